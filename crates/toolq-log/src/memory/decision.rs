//! Which of the earlier calls a call is, and what becomes of one that an earlier run, or another one, has started. Pure
//! functions of what the entries of the calls and the logs of their latest attempts say.

use crate::identity::{CallKeys, MemoryKey};
use toolq_core::types::CallContext;

/// The latest attempt at a call, as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, counted from 1.
    pub number: u32,
    /// What a person or a probe said about it: whether it was done.
    pub settled: Option<bool>,
    /// Whether somebody holds its log. Tested before the log is read.
    pub log: LogAccess,
    /// What the log says about its end.
    pub end: AttemptEnd,
    /// The call has the tool and the input of this attempt.
    pub is_same_call: bool,
    /// It has its result, and that has counted for as long as its tool says.
    pub is_expired: bool,
}

/// Whether the run of an attempt may still be at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LogAccess {
    /// It is this run. A call that an agent makes can't wait for that of the agent.
    Own,
    /// Another run holds the log.
    Held,
    /// Its run is over, with everything that it started.
    #[default]
    Free,
    /// The log is gone.
    Gone,
}

/// What a log says about the end of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Nothing: it may have been started, and may have had its effect.
    #[default]
    Unknown,
    /// It surely had no effect.
    Nothing,
    /// It is in doubt.
    InDoubt,
    /// It has a result.
    Result(ResultKind),
}

/// What a result says about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    /// The call was done.
    Done,
    /// The call failed, and what did it says so by its exit code or status.
    Refused,
    /// The call failed in a way that leaves its effect open: a timeout, a signal, a server's error.
    Open,
}

/// What the call that asks is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asker {
    /// What becomes of it if it may have had its effect.
    pub if_doubtful: IfDoubtful,
    /// Its tool runs once for some of its values, and not once for each call.
    pub is_once: bool,
    /// It is to run again.
    pub is_new: bool,
}

/// What a tool says about calls that may have had their effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfDoubtful {
    /// Nothing: somebody has to look.
    #[default]
    Ask,
    /// Its probe can find out.
    Probe,
    /// Running them twice does no harm.
    Repeat,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It runs, with this number of attempt.
    Run(u32),
    /// It runs once more on purpose, with this number of attempt, and as another call for its callee.
    Renew(u32),
    /// It has the result in the log of its latest attempt, once that is synced.
    Answer,
    /// It has the result that it was settled with.
    AnswerSettled,
    /// It may have had its effect.
    InDoubt,
    /// As [`Self::InDoubt`], but its probe can find out.
    Probe,
    /// A run is at it: its result is awaited.
    Wait,
    /// The agent that makes this call is at it.
    IsRunning,
    /// Its id, or its values, belong to a call with another tool or input, which isn't in doubt.
    Conflict,
}

/// Decides what becomes of a call. `latest` is its latest attempt.
pub fn decide(latest: Option<&Attempt>, asker: Asker) -> Decision {
    let Some(latest) = latest else {
        return Decision::Run(1);
    };
    let next = latest.number + 1;
    let is_open = latest.end == AttemptEnd::Unknown && latest.settled.is_none();
    let is_doubtful = latest.settled.is_none()
        && match latest.end {
            AttemptEnd::Unknown | AttemptEnd::InDoubt => true,
            AttemptEnd::Result(kind) => kind == ResultKind::Open && asker.is_once,
            AttemptEnd::Nothing => false,
        };
    match (latest.end, latest.settled) {
        _ if is_open && latest.log == LogAccess::Own => Decision::IsRunning,
        _ if is_open && latest.log == LogAccess::Held => Decision::Wait,
        (_, Some(false)) | (AttemptEnd::Nothing, None) => Decision::Run(next),
        (AttemptEnd::Result(ResultKind::Refused), None) if asker.is_once => Decision::Run(next),
        (AttemptEnd::Result(_), _) | (_, Some(true)) if latest.is_expired => Decision::Renew(next),
        _ if asker.is_new => Decision::Renew(next),
        // This call's probe, or that it may be repeated, says nothing about a call with another input.
        _ if is_doubtful && !latest.is_same_call => Decision::InDoubt,
        _ if is_doubtful => match asker.if_doubtful {
            IfDoubtful::Repeat => Decision::Run(next),
            IfDoubtful::Probe => Decision::Probe,
            IfDoubtful::Ask => Decision::InDoubt,
        },
        _ if !latest.is_same_call => Decision::Conflict,
        (_, Some(true)) => Decision::AnswerSettled,
        (_, None) => Decision::Answer,
    }
}

// Which of the earlier calls a call is, and what becomes of it.

/// An earlier call with the same key.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its number among them, counted from 1.
    pub instance: u32,
    /// Where it stands.
    pub context: CallContext,
    /// Its latest attempt. `None` if it only waits for an approval.
    pub attempt: Option<Attempt>,
    /// An earlier call of the same document or process is this one.
    pub is_taken: bool,
}

/// What a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// The key under which it is remembered.
    pub key: MemoryKey,
    /// Its number among the calls with this key, counted from 1.
    pub instance: u32,
    /// What becomes of it.
    pub decision: Decision,
}

/// What is known of an earlier call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberState {
    /// It has an answer.
    Answered,
    /// It may have had its effect, or is having it.
    Doubtful,
    /// It surely did nothing: it wasn't started, or somebody said so, or it waits for an approval.
    Nothing,
}

impl Member {
    fn state(&self, asker: Asker) -> MemberState {
        let is_new = false;
        match decide(self.attempt.as_ref(), Asker { is_new, ..asker }) {
            Decision::Run(_) | Decision::Renew(_) => MemberState::Nothing,
            Decision::Answer | Decision::AnswerSettled | Decision::Conflict => {
                MemberState::Answered
            }
            Decision::InDoubt | Decision::Probe | Decision::Wait | Decision::IsRunning => {
                MemberState::Doubtful
            }
        }
    }
}

/// Finds out which earlier call a call is, and what becomes of it. `find` returns the calls with a key, in the order of their
/// numbers.
///
/// # Errors
/// Those of `find`.
pub fn recall<E>(
    keys: &CallKeys,
    context: CallContext,
    asker: Asker,
    find: &mut dyn FnMut(&MemoryKey) -> Result<Vec<Member>, E>,
) -> Result<Recalled, E> {
    if let CallKeys::Once { values, earlier } = keys
        && let Some(earlier) = earlier
        && find(values)?.is_empty()
    {
        let as_before = Asker {
            is_once: false,
            ..asker
        };
        let recalled = recall(earlier, context, as_before, find)?;
        if !matches!(recalled.decision, Decision::Run(_) | Decision::Renew(_)) {
            return Ok(recalled);
        }
    }
    let (alone, among) = match keys {
        CallKeys::Once { values, .. } => (Some(values), None),
        CallKeys::Id { id, call } => (Some(id), Some(call)),
        CallKeys::Call { call, shared_id } => (shared_id.as_ref(), Some(call)),
    };
    let owner = match alone {
        Some(key) => find(key)?.into_iter().next(),
        None => None,
    };
    let is_shared = matches!(keys, CallKeys::Call { .. });
    let owner = owner.filter(|owner| match owner.attempt {
        Some(attempt) => {
            !is_shared || attempt.is_same_call && owner.state(asker) != MemberState::Nothing
        }
        None => !is_shared,
    });
    let members = match among {
        // Whoever has a random id has no others beside it.
        Some(key) if is_shared || owner.is_none() => find(key)?,
        _ => Vec::new(),
    };
    let found = select(&members, context, asker);
    let (key, instance, attempt) = match (found, owner, among, alone) {
        (Some(member), _, Some(key), _) => (key, member.instance, member.attempt),
        (None, Some(owner), _, Some(key)) => (key, owner.instance, owner.attempt),
        _ if is_shared => (keys.new_key(), next_number(&members), None),
        _ => (keys.new_key(), 1, None),
    };
    Ok(Recalled {
        key: key.clone(),
        instance,
        decision: decide(attempt.as_ref(), asker),
    })
}

fn next_number(members: &[Member]) -> u32 {
    members.last().map_or(0, |member| member.instance) + 1
}

/// Finds out which of several calls with the same key a call at `context` is. Of several in a document that can't be told apart,
/// the n-th is the n-th of them. What remains ambiguous is answered rather than repeated.
fn select(members: &[Member], context: CallContext, asker: Asker) -> Option<&Member> {
    let alike: Vec<(&Member, MemberState)> = members
        .iter()
        .filter(|member| !context.differs_from(member.context))
        .map(|member| (member, member.state(asker)))
        .collect();
    let is_same = |member: &Member| context.is_same_place(member.context);
    let free = |state: MemberState| {
        let of_state = alike
            .iter()
            .filter(move |(member, other)| !member.is_taken && *other == state);
        of_state.map(|(member, _)| *member)
    };
    let doubtful = alike
        .iter()
        .find(|(_, state)| *state == MemberState::Doubtful);
    free(MemberState::Answered)
        .find(|member| is_same(member))
        .or(doubtful.map(|(member, _)| *member))
        .or_else(|| free(MemberState::Answered).next())
        .or_else(|| free(MemberState::Nothing).find(|member| is_same(member)))
        .or_else(|| free(MemberState::Nothing).next())
}
