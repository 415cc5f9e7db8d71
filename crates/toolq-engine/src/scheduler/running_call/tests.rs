//! What a running call derives from its tool and its key.

use std::num::NonZeroUsize;

use super::*;

use crate::scheduler::permits::ConcurrencyLimit;
use toolq_core::testing::{accepted_call, sample_tool};
use toolq_core::types::{Tool, Verdict};

pub(crate) fn job(total: Option<Duration>) -> Arc<CallJob> {
    let timeout = CallTimeouts {
        after: Duration::from_secs(4),
        total,
        ..sample_tool("t").timeout
    };
    let tool = Tool {
        timeout,
        ..sample_tool("t")
    };
    let checked = accepted_call(0, tool, false, "{}");
    let Verdict::Accepted(accepted) = checked.verdict else {
        unreachable!()
    };
    Arc::new(CallJob {
        call: checked.call,
        accepted: *accepted,
        ticket: None,
        prior_attempts: None,
        needs_probe: false,
    })
}

/// Returns a call that starts 100 seconds after the engine.
fn running_call(total: Option<u64>, key: &str) -> RunningCall {
    let permit = ConcurrencyLimit::new(NonZeroUsize::MIN).try_acquire();
    let job = job(total.map(Duration::from_secs));
    RunningCall::new(
        job,
        key.to_owned(),
        Duration::from_secs(100),
        permit.unwrap(),
    )
}

/// A message about a timeout names the limit that was reached.
#[test]
fn an_attempt_ends_at_whichever_limit_comes_first() {
    for (total, now, remaining, duration, configured) in [
        (None, 100, None, 4, 4),
        (None, 900, None, 4, 4),
        (Some(10), 100, Some(10), 4, 4),
        (Some(10), 106, Some(4), 4, 4),
        (Some(10), 107, Some(3), 3, 10),
        (Some(10), 200, Some(0), 0, 10),
    ] {
        let run = running_call(total, "key");
        let now = Duration::from_secs(now);
        assert_eq!(run.remaining_time(now), remaining.map(Duration::from_secs));
        let timeout = run.attempt_timeout(now);
        let seconds = (timeout.duration.as_secs(), timeout.configured.as_secs());
        assert_eq!(seconds, (duration, configured), "{total:?} {now:?}");
    }
}

/// A resumed run waits as long as the one before would have.
#[test]
fn jitter_follows_from_the_idempotency_key() {
    for (key, seed) in [
        ("00000000000000ffabcdef", 255),
        ("0000000000000100abcdef", 256),
        ("short", 0),
    ] {
        assert_eq!(running_call(None, key).jitter_seed(), seed, "{key}");
    }
}
