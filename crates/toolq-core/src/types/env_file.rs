//! The variables of an `env_file`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Variables that tools.yaml takes from a file. All of their values are secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    /// The file, absolute. `None` without an `env_file`.
    pub(crate) path: Option<PathBuf>,
    pub(crate) variables: BTreeMap<String, String>,
}

impl EnvFile {
    /// Returns the path of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsStr::new)
    }

    /// Returns the names of the variables, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Returns all values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.variables.values().map(String::as_str)
    }
}

/// Shows no value.
impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFile")
            .field("path", &self.path)
            .field("names", &self.variables.keys())
            .finish()
    }
}
