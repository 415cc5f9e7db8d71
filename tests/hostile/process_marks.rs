//! Finds the processes that carry a mark, and what the engine has left in this process.

use std::fs;
use std::time::Duration;

use crate::stall_clock::ActiveSpan;

/// The variable that marks a program and, by inheritance, its descendants.
pub const MARK_VARIABLE: &str = "HOSTILE_MARK";

/// How long after a call's end marked processes may still exist. It's far longer than they do: hundreds of processes
/// that fork all the time compete with those that kill them, on a machine that may be busy otherwise.
const MAX_CLEANUP_TIME: Duration = Duration::from_secs(20);

/// Returns the `stat` lines of processes with this mark in their environment or arguments. Zombies have neither, so they
/// don't count.
fn processes_with_mark(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let dirs = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name()
            .is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit())
    });
    let own_pid = std::process::id().to_string();
    dirs.filter(|dir| !dir.ends_with(&own_pid))
        .filter_map(|dir| {
            let read = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
            let text = [read("environ"), read("cmdline")].concat();
            let found = text
                .windows(mark.len())
                .any(|window| window == mark.as_bytes());
            found.then(|| String::from_utf8_lossy(&read("stat")).into_owned())
        })
        .collect()
}

/// Waits until no process carries the mark.
pub fn wait_until_gone(mark: &str, what: &str) {
    let span = ActiveSpan::begin();
    loop {
        let survivors = processes_with_mark(mark);
        if survivors.is_empty() {
            return;
        }
        assert!(
            span.active_time() < MAX_CLEANUP_TIME,
            "{what} left processes behind: {survivors:#?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of file descriptors that this process has open.
pub fn open_descriptor_count() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the `stat` lines of this process's children, including zombies.
pub fn child_processes() -> Vec<String> {
    let own_pid = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest);
            rest.and_then(|rest| rest.split(' ').nth(1)) == Some(&own_pid)
        })
        .collect()
}
