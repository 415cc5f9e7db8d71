//! How long a run waits for others when it is stopped.

use std::time::Duration;

/// Signals this close together count as one: `timeout` sends TERM to its child and then to the child's process group.
pub(crate) const DUPLICATE_SIGNAL_WINDOW: Duration = Duration::from_millis(50);
/// How long after the second signal toolq may still print results. Then it exits, even if it is blocked.
pub(crate) const FORCED_EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for our own SIGSTOP to take effect.
pub(crate) const SUSPEND_TIMEOUT: Duration = Duration::from_secs(1);

// Killed attempts return their partial output, and it is printed, before the exit is forced.
const _: () = assert!(FORCED_EXIT_TIMEOUT.as_millis() > toolq_engine::DROP_DEADLINE.as_millis());
