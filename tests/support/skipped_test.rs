//! Tests that need what a machine lacks.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;

/// Says that a test, or a part of it, is skipped, even if the test harness captures its output. Adds the line to the file that
/// `TOOLQ_SKIPPED` names, so that `.ci/run` can list it.
pub fn skip_test(test: &str, why: impl Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = format!("SKIPPED {test}: {why}\n");
    if !SAID.lock().unwrap().insert(line.clone()) {
        return;
    }
    // If stderr is closed, the line can't be read anyway.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("TOOLQ_SKIPPED") {
        let mut list = File::options()
            .append(true)
            .create(true)
            .open(list)
            .unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}
