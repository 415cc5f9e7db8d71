//! Every timeout and interval, with the relations between them.
//!
//! Killing a process tree is a cascade: each level must wait longer than the level below it may take. A program
//! that embeds this crate checks its own timeouts against these.

use std::time::Duration;

/// How often a reaper looks again while processes that it killed still exist.
pub const KILL_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How often the processes of a call are counted if their number is limited.
pub const PROCESS_COUNT_INTERVAL: Duration = Duration::from_millis(20);
/// How often the output of a program whose host is gone is read and discarded.
pub const OUTPUT_DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// How long a reaper waits for killed processes to disappear. Its supervisor waits for those that remain.
pub const REAPER_KILL_TIMEOUT: Duration = Duration::from_millis(300);
/// Upper bound of a program's grace period after the host has died. A user who kills the host expects its programs to
/// end soon.
pub const MAX_HOST_EXIT_GRACE: Duration = Duration::from_secs(2);
/// How long a supervisor waits for its reapers to exit once the host is gone.
pub const REAPER_EXIT_TIMEOUT: Duration = Duration::from_millis(2500);
/// How long a supervisor waits for orphans to disappear after SIGKILL while its host lives. Once the host is gone, it
/// waits until they do.
pub const ORPHAN_KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a supervisor is resumed, in case a program has stopped it. Once its host is gone, no other process would
/// resume it.
pub const RESUME_INTERVAL: Duration = Duration::from_millis(500);
/// How long a host waits for its supervisor when it closes the pool. All programs are already gone, so the wait only
/// prevents a zombie.
pub const SUPERVISOR_EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause between two searches for orphans of a supervisor that was killed.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(10);
/// How many times to look for them.
pub const MAX_SWEEPS: u32 = 100;

// A killed process gets several looks before its reaper gives up.
const _: () = assert!(REAPER_KILL_TIMEOUT.as_millis() >= 10 * KILL_POLL_INTERVAL.as_millis());
// A supervisor outwaits a reaper that waits for what it killed.
const _: () = assert!(
    REAPER_EXIT_TIMEOUT.as_millis()
        > MAX_HOST_EXIT_GRACE.as_millis() + REAPER_KILL_TIMEOUT.as_millis()
);
// The sweep for orphans lasts as long as a supervisor may take to kill them.
const _: () =
    assert!(MAX_SWEEPS as u128 * SWEEP_INTERVAL.as_millis() >= ORPHAN_KILL_TIMEOUT.as_millis());
