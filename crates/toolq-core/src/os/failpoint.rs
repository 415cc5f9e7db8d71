//! Places where a test can end toolq, or make a step fail: `TOOLQ_FAILPOINT=NAME:N:kill|error|panic` does so when the
//! place NAME is passed for the N-th time; the name `any` counts all of them. A release build has none.

use std::io;

use crate::os::environment::Environment;

/// Reads which place is wanted. Only the program itself does this, once.
pub fn arm_failpoints(environment: &Environment) {
    #[cfg(debug_assertions)]
    if let Some(wanted) = environment.get("TOOLQ_FAILPOINT") {
        armed::arm(&wanted);
    }
    #[cfg(not(debug_assertions))]
    let _ = environment;
}

/// The place `name` is passed.
///
/// # Errors
/// A test wants the step that follows to fail.
///
/// # Panics
/// A test wants that.
#[inline]
pub fn failpoint(name: &'static str) -> io::Result<()> {
    #[cfg(debug_assertions)]
    return armed::pass(name);
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        Ok(())
    }
}

/// The place `name` is passed, in the middle of a step: a test that kills there gets `half` done before.
#[inline]
pub fn failpoint_within(name: &'static str, half: impl FnOnce()) {
    #[cfg(debug_assertions)]
    armed::pass_within(name, half);
    #[cfg(not(debug_assertions))]
    let _ = (name, half);
}

#[cfg(debug_assertions)]
mod armed {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static WANTED: OnceLock<Wanted> = OnceLock::new();

    struct Wanted {
        name: String,
        /// How often it is passed until something happens.
        left: AtomicU64,
        action: Action,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Action {
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
        let wanted = Wanted {
            name: name.to_owned(),
            left: AtomicU64::new(at.parse().unwrap_or_default()),
            action: match action {
                "kill" => Action::Kill,
                "panic" => Action::Panic,
                _ => Action::Error,
            },
        };
        let _ = WANTED.set(wanted);
    }

    pub(crate) fn pass(name: &str) -> io::Result<()> {
        match hit(name) {
            None => Ok(()),
            Some(Action::Kill) => {
                die();
                Ok(())
            }
            Some(Action::Panic) => panic!("failpoint {name}"),
            Some(Action::Error) => Err(io::Error::other(format!("failpoint {name}"))),
        }
    }

    pub(crate) fn pass_within(name: &str, half: impl FnOnce()) {
        if hit(name) == Some(Action::Kill) {
            half();
            die();
        }
    }

    fn hit(name: &str) -> Option<Action> {
        let wanted = WANTED.get()?;
        let meant = wanted.name == "any" || wanted.name == name;
        let now = meant && wanted.left.fetch_sub(1, Ordering::SeqCst) == 1;
        now.then_some(wanted.action)
    }

    fn die() {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
