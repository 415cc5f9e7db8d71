//! Environment variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::types::EnvFile;

/// A snapshot of the environment, taken once when toolq starts, and what tools.yaml adds to it.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    own: BTreeMap<OsString, OsString>,
    /// For variables that `own` doesn't have.
    added: EnvFile,
}

impl Environment {
    /// Returns a variable if it is set and valid UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_os(name)?.to_str().map(str::to_owned)
    }

    /// Returns a variable's raw value.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.get_own(name).or_else(|| self.added.get(name))
    }

    /// Returns a variable's raw value in the environment in which toolq was started.
    pub fn get_own(&self, name: &str) -> Option<&OsStr> {
        self.own.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns all variables of the environment in which toolq was started, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.own.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns this environment with the variables of a file below its own.
    #[must_use]
    pub fn with_env_file(&self, file: &EnvFile) -> Self {
        Self {
            own: self.own.clone(),
            added: file.clone(),
        }
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self {
            own: variables.into_iter().collect(),
            added: EnvFile::default(),
        }
    }
}
