//! The recordings that tests read: those in `fixtures/recordings`, or those in a directory that `TOOLQ_RECORDINGS` names
//! (`.ci/recordings` names one with thousands).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::repository_root;

/// Returns the directory of the recordings. Its `calls.json` says what an independent reader finds in each.
pub fn recordings_dir() -> PathBuf {
    let named = std::env::var_os("TOOLQ_RECORDINGS").map(PathBuf::from);
    named.unwrap_or_else(|| repository_root().join("fixtures/recordings"))
}

/// Returns all files below `dir` whose name ends in one of `endings`, sorted.
pub fn files_below(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut pending = vec![dir.to_owned()];
    let mut found = Vec::new();
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy();
            if path.is_dir() {
                pending.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub fn read_json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
