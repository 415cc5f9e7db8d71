//! What a running call derives from its tool and its key.

use std::num::NonZeroUsize;

use futures_util::FutureExt as _;

use super::*;

use crate::scheduler::call_limit;
use crate::turn::queue::CallStop;
use toolq_core::types::{AgentInvocation, HaltCause, Invocation, Tool, Verdict};
use toolq_testing::{accepted_call, sample_tool};

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
        is_remembered: false,
        approval: None,
        unsettled: None,
    })
}

/// Returns a call that starts 100 seconds after the engine.
fn running_call(total: Option<u64>, key: &str) -> RunningCall {
    let permit = call_limit(NonZeroUsize::MIN).try_acquire_owned().ok();
    let job = job(total.map(Duration::from_secs));
    RunningCall::new(
        (0, CallRef::new(&job.call, None).into()),
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

/// A call may be stopped by what fails beside it, and by a halt. It is canceled once, and the first cause counts.
#[tokio::test]
async fn a_call_is_stopped_once() {
    let (send, sent) = oneshot::channel();
    let (mut stop, mut signal) = (CallStop::new(send), StopSignal::new(sent));
    let before = |signal: &mut StopSignal| {
        let started = signal.before_start(async { Continue(()) });
        started.now_or_never().unwrap()
    };
    assert!(signal.received().now_or_never().is_none());
    assert!(before(&mut signal).is_continue());
    let cause = StopCause::SiblingFailed("t".to_owned());
    stop.send(&cause);
    stop.send(&StopCause::Halted(HaltCause::OutputLost));
    assert_eq!(signal.received().await, cause);
    assert_eq!(signal.received().await, cause);
    assert_eq!(signal.poll(), Some(&cause));
    assert!(matches!(
        before(&mut signal),
        Break(Outcome::NotExecuted(_))
    ));
}

/// Only the calls of agents count what a model uses.
#[test]
fn the_call_of_an_agent_is_known_by_what_it_runs() {
    let invocation = Invocation::Agent(AgentInvocation { prompt: None });
    let of_command = job(None);
    assert!(!of_command.is_agent());
    let mut of_agent = Arc::into_inner(of_command).unwrap();
    of_agent.accepted.invocation = Some(invocation);
    assert!(of_agent.is_agent());
    let permit = call_limit(NonZeroUsize::MIN).try_acquire_owned().ok();
    let key = "key".to_owned();
    let call = (0, CallRef::new(&of_agent.call, None).into());
    let run = RunningCall::new(call, of_agent.into(), key, Duration::ZERO, permit.unwrap());
    assert!(run.agent_usage.is_some());
    assert!(running_call(None, "key").agent_usage.is_none());
}
