//! Who carries a mark, and what this process itself has kept.

use std::fs;
use std::time::Duration;

use crate::machine::Span;

/// The variable that marks a beast and all that comes of it.
pub const MARK: &str = "ZOO_MARK";

/// How long after its end something may still be there.
const GONE: Duration = Duration::from_secs(2);

/// The processes with this mark in their environment or arguments, zombies not counted.
fn marked(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name()
            .is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit())
    });
    let own = std::process::id().to_string();
    folders
        .filter(|folder| !folder.ends_with(&own))
        .filter_map(|folder| {
            let read = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
            let text = [read("environ"), read("cmdline")].concat();
            let found = text
                .windows(mark.len())
                .any(|window| window == mark.as_bytes());
            found.then(|| String::from_utf8_lossy(&read("stat")).into_owned())
        })
        .collect()
}

/// Waits until nobody carries the mark; how long that took, as far as the machine was there.
pub fn wait_until_gone(mark: &str, what: &str) -> Duration {
    let since = Span::begin();
    loop {
        let passed = since.passed();
        let left = marked(mark);
        if left.is_empty() {
            return passed;
        }
        assert!(passed < GONE, "{what} has left {left:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Descriptors that are open here.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Children of this process, zombies too.
pub fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest);
            rest.and_then(|rest| rest.split(' ').nth(1)) == Some(&own)
        })
        .collect()
}
