//! Which of the earlier calls a call is, and what becomes of it.

use crate::memory::decision::{Asker, Attempt, Decision, decide};
use crate::memory::identity::{CallKeys, MemoryKey};
use toolq_core::types::CallContext;

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
