//! The recordings next to the repository. They aren't part of it.

use std::io::Write as _;
use std::path::Path;
use std::thread;

/// Where the recordings are, if they are there.
pub const DATA_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");

/// Returns the directory of the recordings. Without it, says that the running test is skipped, even though the test
/// harness captures what tests print.
pub fn recorded_data() -> Option<&'static Path> {
    let data = Path::new(DATA_DIR);
    if data.is_dir() {
        return Some(data);
    }
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // If stderr is closed, the message can't be read anyway.
    let _ = writeln!(
        std::io::stderr(),
        "skipped {test}: no recordings in {DATA_DIR}"
    );
    None
}
