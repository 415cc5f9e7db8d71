//! Reads and writes tools.lock: what the servers of a tools.yaml announced when a person locked them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::json::{expect_json, find_lost_digits};
use crate::types::ServerLock;

// The file beside tools.yaml.

/// The version of the format.
const FORMAT_VERSION: u32 = 1;
/// The name of the lock if tools.yaml is read from stdin, and so has no name.
const DEFAULT_NAME: &str = "tools.lock";

/// What all servers of a file announced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsLock {
    version: u32,
    /// By the name of the server in tools.yaml.
    pub servers: BTreeMap<String, ServerLock>,
}

impl Default for ToolsLock {
    fn default() -> Self {
        Self {
            version: FORMAT_VERSION,
            servers: BTreeMap::new(),
        }
    }
}

impl ToolsLock {
    /// Returns the path of the lock of a tools file: the same name with `.lock`.
    pub fn path_beside(tools_file: &Path) -> PathBuf {
        if tools_file == Path::new("-") {
            return PathBuf::from(DEFAULT_NAME);
        }
        tools_file.with_extension("lock")
    }

    /// Reads the lock of a tools file. Returns `None` if the lock doesn't exist.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn read(tools_file: &Path) -> Result<Option<Self>, String> {
        let path = Self::path_beside(tools_file);
        // `-c tools.lock` names a tools file, regardless of its name.
        if path == tools_file {
            return Ok(None);
        }
        let text = match std::fs::metadata(&path) {
            // A named pipe would never end.
            Ok(found) if !found.is_file() => {
                return Err(format!("{} isn't a regular file", path.display()));
            }
            _ => std::fs::read_to_string(&path),
        };
        let text = match text {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) if is_unreachable(tools_file) => return Ok(None),
            Err(error) => return Err(format!("{} can't be read: {error}", path.display())),
        };
        let lock = Self::parse(&text);
        lock.map(Some)
            .map_err(|why| format!("{} can't be used: {why}", path.display()))
    }

    /// Parses a lock.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lock: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if let Some(integer) = find_lost_digits(text) {
            return Err(format!("it has {integer}"));
        }
        if lock.version != FORMAT_VERSION {
            return Err(format!("version {} isn't supported", lock.version));
        }
        for (server, tools) in &lock.servers {
            for (name, tool) in &tools.tools {
                if tool.definition.digest() != tool.sha256 {
                    return Err(format!(
                        "the definition of {name} of the server {server} was changed; only its `effect` may be"
                    ));
                }
            }
        }
        Ok(lock)
    }

    /// Returns the text of the file.
    pub fn render(&self) -> String {
        let mut text = expect_json(serde_json::to_string_pretty(self));
        text.push('\n');
        text
    }
}

/// Returns whether even the tools file can't be looked up. Reading that file reports why.
fn is_unreachable(tools_file: &Path) -> bool {
    let found = std::fs::symlink_metadata(tools_file);
    found.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
}

// What tools.yaml is read with.

/// What is known of the servers of a tools.yaml.
#[derive(Debug, Clone, Copy)]
pub enum LockUse<'l> {
    /// Nothing: there is no lock.
    None,
    /// What the lock says.
    Read(&'l ToolsLock),
    /// What the lock says, which is about to be written anew. Tools may lack what it will have.
    Rewrite(&'l ToolsLock),
    /// What the lock says, and what servers have announced that it doesn't have. Others haven't been asked yet.
    Announced(&'l ToolsLock),
}

impl<'l> LockUse<'l> {
    /// Returns the lock, if there is one.
    pub fn lock(self) -> Option<&'l ToolsLock> {
        match self {
            Self::None => None,
            Self::Read(lock) | Self::Rewrite(lock) | Self::Announced(lock) => Some(lock),
        }
    }
}

impl<'l> From<&'l Option<ToolsLock>> for LockUse<'l> {
    fn from(lock: &'l Option<ToolsLock>) -> Self {
        lock.as_ref().map_or(Self::None, Self::Read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::{ToolDefinition, ToolLock};

    fn lock() -> ToolsLock {
        let definition = ToolDefinition {
            description: Some("Reads a note.".to_owned()),
            input_schema: json!({"type": "object"}),
            ..ToolDefinition::default()
        };
        let server = ServerLock {
            name: None,
            version: Some("1".to_owned()),
            protocol: "2025-11-25".to_owned(),
            date: "2026-11-23".to_owned(),
            tools: BTreeMap::from([("read".to_owned(), ToolLock::new(definition))]),
        };
        ToolsLock {
            servers: BTreeMap::from([("notes".to_owned(), server)]),
            ..ToolsLock::default()
        }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(ToolsLock::parse(&lock().render()), Ok(lock()));
    }

    /// A lock that is damaged or edited elsewhere is an error.
    #[test]
    fn only_the_effect_may_be_edited() {
        let text = lock().render();
        let edited = text.replace("\"write\"", "\"read\"");
        assert!(ToolsLock::parse(&edited).is_ok());
        let edited = text.replace("Reads a note.", "Pays.");
        let why = ToolsLock::parse(&edited).unwrap_err();
        assert!(why.contains("read of the server notes"), "{why}");
        let why = ToolsLock::parse(&text.replace("\"version\": 1", "\"version\": 2")).unwrap_err();
        assert!(why.contains("version 2"), "{why}");
    }

    /// A digest of the rounded number would fit any number that is rounded to it.
    #[test]
    fn an_integer_that_would_lose_digits_is_refused() {
        let text = lock().render();
        let rounded = text.replace(
            "\"object\"",
            "\"object\", \"minimum\": 18446744073709551617",
        );
        let why = ToolsLock::parse(&rounded).unwrap_err();
        assert!(why.contains("18446744073709551617"), "{why}");
    }

    #[test]
    fn the_lock_is_beside_the_file_that_it_is_of() {
        for (file, lock) in [
            ("tools.yaml", "tools.lock"),
            ("a/b.yml", "a/b.lock"),
            ("-", "tools.lock"),
        ] {
            assert_eq!(ToolsLock::path_beside(Path::new(file)), Path::new(lock));
        }
    }
}
