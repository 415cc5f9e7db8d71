//! Timeouts of the engine itself, checked against those of process supervision. Timeouts of tools are in their
//! settings.

use std::time::Duration;

use procfence::timing::REAPER_KILL_TIMEOUT;

/// How long a killed program may take to end. Then its attempt returns what it printed, and leaves the rest to the supervisor.
pub(crate) const KILL_DEADLINE: Duration = Duration::from_millis(600);
/// How long a killed attempt may take to return its partial output before it is dropped.
pub const DROP_DEADLINE: Duration = Duration::from_millis(800);
/// How long a reaper may take to respond, in addition to a program's grace period. If a program has stopped its reaper,
/// its result is delayed by this much.
pub(crate) const REAPER_TIMEOUT: Duration = Duration::from_millis(500);
/// How long an unsupervised program may take to exit after SIGKILL. One that takes longer is left to a thread to reap.
pub(crate) const DIRECT_KILL_TIMEOUT: Duration = Duration::from_millis(500);
/// How often to check for the exit of an unsupervised program if there is no notification.
pub(crate) const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long nothing may come from the pipes of a program that has exited until they count as drained: processes that it left may
/// keep them open forever.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);

/// How long to wait at first before looking again whether another run has come to the end of a call.
pub(crate) const MIN_LOOK_AGAIN_INTERVAL: Duration = Duration::from_millis(10);
/// The longest such wait.
pub(crate) const MAX_LOOK_AGAIN_INTERVAL: Duration = Duration::from_millis(200);

/// How long a server may take to end by itself after its stdin was closed, and again after SIGTERM.
pub(crate) const SERVER_GRACE: Duration = Duration::from_secs(2);
/// How long a response may continue after the answer in it, so that its connection can be used again.
pub(crate) const ANSWERED_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a server may be silent after its start before it is taken for one of the legacy era.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

// A reaper that waits for killed processes still responds in time.
const _: () = assert!(REAPER_TIMEOUT.as_millis() > REAPER_KILL_TIMEOUT.as_millis());
// A killed attempt returns what it printed before it is dropped, regardless of how it was started.
const _: () = assert!(DROP_DEADLINE.as_millis() > KILL_DEADLINE.as_millis());
const _: () = assert!(KILL_DEADLINE.as_millis() > REAPER_TIMEOUT.as_millis());
const _: () = assert!(KILL_DEADLINE.as_millis() > DIRECT_KILL_TIMEOUT.as_millis());
const _: () = assert!(
    KILL_DEADLINE.as_millis() >= REAPER_KILL_TIMEOUT.as_millis() + DRAIN_TIMEOUT.as_millis()
);
