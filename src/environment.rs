//! The one place that reads the environment.

use std::ffi::{OsStr, OsString};

use toolq_core::os::Environment;

/// Names the directory for temporary files.
const TEMP_DIR_VARIABLE: &str = "TMPDIR";

/// Returns a snapshot of the environment variables. A relative TMPDIR is made absolute: the commands that get it run in
/// other directories.
pub fn read() -> Environment {
    std::env::vars_os().map(absolute_temp_dir).collect()
}

fn absolute_temp_dir((name, value): (OsString, OsString)) -> (OsString, OsString) {
    if name != OsStr::new(TEMP_DIR_VARIABLE) {
        return (name, value);
    }
    // An empty one has no absolute path, and means nothing.
    let absolute = std::path::absolute(&value).map(OsString::from);
    (name, absolute.unwrap_or(value))
}
