//! Failpoints: places where a test can kill toolq or make a step fail. `TOOLQ_FAILPOINT=NAME:N:kill|error|panic` acts
//! when the failpoint NAME is reached for the Nth time; the name `any` counts all failpoints. Release builds have no
//! failpoints.

use std::io;

use crate::os::environment::Environment;

/// Arms the failpoint that the environment names. Only the program itself calls this, once.
pub fn arm_failpoints(environment: &Environment) {
    #[cfg(debug_assertions)]
    if let Some(spec) = environment.get("TOOLQ_FAILPOINT") {
        armed::arm(&spec);
    }
    #[cfg(not(debug_assertions))]
    let _ = environment;
}

/// Marks the failpoint `name`.
///
/// # Errors
/// A test makes the step that follows fail.
///
/// # Panics
/// A test requested a panic.
#[inline]
pub fn failpoint(name: &'static str) -> io::Result<()> {
    #[cfg(debug_assertions)]
    return armed::reach(name);
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        Ok(())
    }
}

/// Marks the failpoint `name` in the middle of a step. If a test kills toolq here, `half` runs first.
#[inline]
pub fn failpoint_midway(name: &'static str, half: impl FnOnce()) {
    #[cfg(debug_assertions)]
    armed::reach_midway(name, half);
    #[cfg(not(debug_assertions))]
    let _ = (name, half);
}

#[cfg(debug_assertions)]
mod armed {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static ARMED: OnceLock<ArmedFailpoint> = OnceLock::new();

    struct ArmedFailpoint {
        name: String,
        /// How many more times it is reached until it acts.
        remaining: AtomicU64,
        action: FailpointAction,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum FailpointAction {
        Kill,
        Panic,
        Error,
    }

    pub(crate) fn arm(text: &str) {
        let mut parts = text.split(':');
        let (Some(name), Some(at), Some(action)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let failpoint = ArmedFailpoint {
            name: name.to_owned(),
            remaining: AtomicU64::new(at.parse().unwrap_or_default()),
            action: match action {
                "kill" => FailpointAction::Kill,
                "panic" => FailpointAction::Panic,
                _ => FailpointAction::Error,
            },
        };
        let _ = ARMED.set(failpoint);
    }

    pub(crate) fn reach(name: &str) -> io::Result<()> {
        match take_action(name) {
            None => Ok(()),
            Some(FailpointAction::Kill) => {
                kill_self();
                Ok(())
            }
            Some(FailpointAction::Panic) => panic!("failpoint {name}"),
            Some(FailpointAction::Error) => Err(io::Error::other(format!("failpoint {name}"))),
        }
    }

    pub(crate) fn reach_midway(name: &str, half: impl FnOnce()) {
        if take_action(name) == Some(FailpointAction::Kill) {
            half();
            kill_self();
        }
    }

    fn take_action(name: &str) -> Option<FailpointAction> {
        let wanted = ARMED.get()?;
        let is_match = wanted.name == "any" || wanted.name == name;
        let is_due = is_match && wanted.remaining.fetch_sub(1, Ordering::SeqCst) == 1;
        is_due.then_some(wanted.action)
    }

    fn kill_self() {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
