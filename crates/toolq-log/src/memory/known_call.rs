//! What is known of an earlier call: from its entries, and from what the logs say of its attempts.

use std::io;
use std::time::Duration;

use crate::claims::{Claim, ClaimsDir, EntryName, Question, Settlement};
use crate::error::LogError;
use crate::identity::{Identity, MemoryKey};
use crate::memory::decision::{Attempt, AttemptEnd, LogAccess, Member, ResultKind};
use crate::memory::log_index::AttemptFacts;
use toolq_core::types::CallContext;

/// A call with what is known of its latest attempt. Without one, it only waits for an approval.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownCall {
    pub(crate) instance: u32,
    pub(crate) attempt: u32,
    pub(crate) generation: u32,
    pub(crate) context: CallContext,
    pub(crate) settlement: Option<Settlement>,
    pub(super) access: LogAccess,
    pub(crate) facts: Option<AttemptFacts>,
    /// The log of the attempt.
    pub(crate) log: String,
    /// The run that made it first, as far as it was repeated on purpose.
    pub(crate) origin: String,
}

/// Returns an earlier call as it looks to a call that asks.
pub(super) fn member(
    call: &KnownCall,
    identity: &Identity,
    tool: &str,
    (expires, now): (Option<Duration>, u64),
) -> Member {
    let facts = call.facts.as_ref();
    let attempt = call.latest_attempt();
    let is_same_call = facts.is_none_or(|facts| facts.is_same_as(tool, identity));
    let ended = facts.and_then(|facts| facts.result).map(|(_, ended)| ended);
    let ended = call
        .settlement
        .as_ref()
        .map(|settlement| settlement.timestamp)
        .or(ended);
    // A result from the future, where a clock was wrong, doesn't expire.
    let age = ended.and_then(|ended| now.checked_sub(ended));
    let is_expired = expires
        .zip(age)
        .is_some_and(|(expires, age)| u128::from(age) > expires.as_millis());
    let is_doubtful = call.settlement.is_none()
        && attempt.is_some_and(|attempt| attempt.end == AttemptEnd::Result(ResultKind::Open));
    Member {
        instance: call.instance,
        context: call.context,
        attempt: attempt.map(|attempt| Attempt {
            is_same_call,
            is_expired: is_expired && !is_doubtful,
            ..attempt
        }),
        is_taken: false,
    }
}

/// Adds what people said about the calls of a named log, and which only wait for an approval.
pub(super) fn add_entries(
    entries: &ClaimsDir,
    key: &MemoryKey,
    found: &mut Vec<KnownCall>,
) -> Result<(), LogError> {
    let fail = LogError::io(entries.path(), "read");
    let name = |instance, attempt| EntryName {
        key: key.clone(),
        instance,
        attempt,
    };
    let mut has_any = false;
    for known in &mut *found {
        let entry = entries
            .read_settlement(&name(known.instance, known.attempt))
            .map_err(fail)?;
        has_any |= entry.is_some();
        known.settlement = entry.or(known.settlement.take());
    }
    for instance in 1.. {
        let is_claimed = found.iter().any(|known| known.instance == instance);
        let question = entries.read_question(&name(instance, 1), 1).map_err(fail)?;
        let Some(question) = question.filter(|_| !is_claimed) else {
            if is_claimed {
                continue;
            }
            break;
        };
        has_any = true;
        found.push(KnownCall::of_question(instance, question));
    }
    if has_any {
        entries.sync().map_err(fail)?;
    }
    Ok(())
}

/// Reads what the entries say about the call with this number, with the claim of its latest attempt.
pub(super) fn read_call(
    entries: &ClaimsDir,
    key: &MemoryKey,
    instance: u32,
) -> io::Result<Option<(KnownCall, Option<Claim>)>> {
    let name = |attempt| EntryName {
        key: key.clone(),
        instance,
        attempt,
    };
    let mut call = KnownCall {
        instance,
        ..KnownCall::default()
    };
    let mut latest: Option<Claim> = None;
    while let Some(claim) = entries.read_claim(&name(call.attempt + 1))? {
        let is_repeated = call.generation != claim.word;
        if is_repeated {
            call.origin.clone_from(&claim.log);
        }
        call.attempt += 1;
        call.generation = claim.word;
        latest = Some(claim);
    }
    if let Some(claim) = latest {
        call.settlement = entries.read_settlement(&name(call.attempt))?;
        (call.context, call.log) = (claim.context, claim.log.clone());
        return Ok(Some((call, Some(claim))));
    }
    let question = entries.read_question(&name(1), 1)?;
    Ok(question.map(|question| (KnownCall::of_question(instance, question), None)))
}

impl KnownCall {
    /// A call that was never claimed: it waits for an approval.
    fn of_question(instance: u32, question: Question) -> Self {
        Self {
            instance,
            generation: 1,
            context: question.context,
            log: question.log,
            ..Self::default()
        }
    }

    /// Returns its latest attempt, as if a call with the same tool and input asked. `None` if it only waits for an approval.
    pub(crate) fn latest_attempt(&self) -> Option<Attempt> {
        let end = self
            .facts
            .as_ref()
            .map_or(AttemptEnd::Unknown, |facts| facts.known_end(self.access));
        (self.attempt > 0).then_some(Attempt {
            number: self.attempt,
            settled: self.settlement.as_ref().map(|settlement| settlement.done),
            log: self.access,
            end,
            is_same_call: true,
            is_expired: false,
        })
    }

    /// Returns the id under which it was started, as recorded.
    pub(crate) fn tool_use_id(&self) -> Option<&str> {
        self.facts.as_ref().map(|facts| &*facts.tool_use_id)
    }

    /// Whether its latest attempt surely did nothing.
    pub(crate) fn did_nothing(&self) -> bool {
        self.latest_attempt()
            .is_some_and(|attempt| attempt.end == AttemptEnd::Nothing)
    }
}

impl AttemptFacts {
    /// Whether a call has its tool and its input, as that came or as it is executed.
    pub(super) fn is_same_as(&self, tool: &str, identity: &Identity) -> bool {
        let executed = self.executed_digest.as_ref().unwrap_or(&self.input_digest);
        let asked = identity
            .executed_digest
            .as_ref()
            .unwrap_or(&identity.input_digest);
        self.tool == tool && (self.input_digest == identity.input_digest || executed == asked)
    }
}
