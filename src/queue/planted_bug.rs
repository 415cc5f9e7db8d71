//! Bugs that the fault test plants to see that its checker finds them. `TOOLQ_PLANTED_BUG=NAME` plants one. Release builds
//! don't have them.

use toolq_core::os::Environment;

/// A bug that breaks a promise of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlantedBug {
    /// Records are published regardless of what the stream already has.
    NoExpectedSequence,
    /// A call starts before the stream has its start.
    StartBeforeYes,
    /// A worker that takes over a turn doesn't know what was done of it.
    ResumeWithoutRecords,
    /// `collect` prints answers as they come.
    CollectOutOfOrder,
    /// The lease is ignored.
    NoLease,
}

/// Plants the bug that the environment names. Only the program itself calls this, once.
pub(crate) fn plant_bug(environment: &Environment) {
    #[cfg(debug_assertions)]
    if let Some(name) = environment.get("TOOLQ_PLANTED_BUG") {
        planted::plant(&name);
    }
    #[cfg(not(debug_assertions))]
    let _ = environment;
}

/// Returns whether a test has planted this bug.
#[inline]
pub(super) fn has_planted(bug: PlantedBug) -> bool {
    #[cfg(debug_assertions)]
    return planted::is_planted(bug);
    #[cfg(not(debug_assertions))]
    {
        let _ = bug;
        false
    }
}

#[cfg(debug_assertions)]
mod planted {
    use std::sync::OnceLock;

    use super::PlantedBug;

    static PLANTED: OnceLock<PlantedBug> = OnceLock::new();

    pub(super) fn plant(name: &str) {
        let bug = match name {
            "no-expected-sequence" => PlantedBug::NoExpectedSequence,
            "start-before-yes" => PlantedBug::StartBeforeYes,
            "resume-without-records" => PlantedBug::ResumeWithoutRecords,
            "collect-out-of-order" => PlantedBug::CollectOutOfOrder,
            "no-lease" => PlantedBug::NoLease,
            _ => return,
        };
        let _ = PLANTED.set(bug);
    }

    pub(super) fn is_planted(bug: PlantedBug) -> bool {
        PLANTED.get() == Some(&bug)
    }
}
