//! Metadata of a `recovered`.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metadata of a `recovered`: what was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveredRecord {
    /// Number of bytes that were removed from the end of the log.
    pub dropped_bytes: u64,
    /// SHA-256 of these bytes, in hexadecimal.
    pub sha256: String,
    /// Name of the file next to the log that holds them.
    pub file: String,
}

impl RecoveredRecord {
    /// Describes to the user what was done to the log at `path`.
    pub fn message(&self, path: &Path) -> String {
        let bytes = match self.dropped_bytes {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        let file = path.with_file_name(&self.file);
        format!(
            "the end of the session log {} was torn; moved {bytes} of an incomplete record to {}",
            path.display(),
            file.display()
        )
    }
}
