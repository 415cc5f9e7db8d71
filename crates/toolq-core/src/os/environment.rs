use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The environment as it was when toolq started, read once and passed on.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// A variable that is set and UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        self.raw(name)?.to_str().map(str::to_owned)
    }

    /// A variable's bytes.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}
