//! Environment variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// A snapshot of the environment, taken once when toolq starts.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Returns a variable if it is set and valid UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_os(name)?.to_str().map(str::to_owned)
    }

    /// Returns a variable's raw value.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns all variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}
