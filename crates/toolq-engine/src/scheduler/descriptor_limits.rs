//! Limits on concurrent calls that follow from the limit on open files, regardless of `-j`. Without them, many parallel
//! calls would use up the descriptors that the session log needs.

use std::num::NonZeroUsize;

use rustix::process::{Resource, getrlimit};

/// Descriptors that are left for everything except calls.
const RESERVED_DESCRIPTORS: u64 = 64;
/// Descriptors that a running command needs: its pipes on both sides, the socket of its reaper, and a file for its
/// output. Requests need fewer.
const DESCRIPTORS_PER_CALL: u64 = 8;
/// Levels of nested agents that share the descriptors for agents.
const AGENT_LEVELS: u64 = 4;

/// Maximum numbers of calls at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptorLimits {
    /// Of calls other than those of agents.
    pub(crate) calls: NonZeroUsize,
    /// Of agents on each level of nesting. An agent has one request in flight.
    pub(crate) agents: NonZeroUsize,
}

impl DescriptorLimits {
    /// Returns the limits for `jobs` calls at once in this process.
    pub(crate) fn of_process(jobs: NonZeroUsize) -> Self {
        Self::new(jobs, getrlimit(Resource::Nofile).current)
    }

    /// Three quarters of the descriptors are for calls, one quarter for agents. `None` is no limit on open files.
    fn new(jobs: NonZeroUsize, open_files: Option<u64>) -> Self {
        let available = open_files
            .unwrap_or(u64::MAX)
            .saturating_sub(RESERVED_DESCRIPTORS);
        let capped = |maximum: u64| {
            let maximum = usize::try_from(maximum).unwrap_or(usize::MAX);
            jobs.min(NonZeroUsize::new(maximum).unwrap_or(NonZeroUsize::MIN))
        };
        Self {
            calls: capped(available / 4 * 3 / DESCRIPTORS_PER_CALL),
            agents: capped(available / 4 / AGENT_LEVELS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(jobs: usize, open_files: Option<u64>) -> (usize, usize) {
        let limits = DescriptorLimits::new(jobs.try_into().unwrap(), open_files);
        (limits.calls.get(), limits.agents.get())
    }

    #[test]
    fn usual_numbers_of_jobs_are_not_limited() {
        assert_eq!(limits(10, Some(1024)), (10, 10));
        assert_eq!(limits(1000, Some(1 << 20)), (1000, 1000));
        assert_eq!(limits(100_000, None), (100_000, 100_000));
    }

    #[test]
    fn calls_and_agents_leave_descriptors_for_the_log() {
        assert_eq!(limits(1500, Some(1024)), (90, 60));
        for open_files in 0..5000 {
            let (calls, agents) = limits(10_000, Some(open_files));
            let used = calls as u64 * DESCRIPTORS_PER_CALL + agents as u64 * AGENT_LEVELS;
            assert!(calls >= 1 && agents >= 1);
            assert!(
                open_files < 100 || used + RESERVED_DESCRIPTORS <= open_files,
                "{open_files}"
            );
        }
    }
}
