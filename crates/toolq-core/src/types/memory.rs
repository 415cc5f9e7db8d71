//! The memory, as the engine asks it: whether a call has run before, and the claim without which none that writes starts.

use std::fmt::Debug;

use crate::types::call::{Call, CallKey, CallRef, TurnOrigin};
use crate::types::outcome::{Outcome, RestoredResult};
use crate::types::verdict::{AcceptedCall, Approval};

/// What says whether a call has run before. Its files may be slow, so nothing else waits for its answers.
pub trait CallHistory: Debug + Send + Sync {
    /// Returns what the memory knows of a call. Blocks, unless [`Self::is_at_hand`].
    ///
    /// # Errors
    /// The memory can't be read.
    fn recall(&self, call: &RecalledCall<'_>) -> Result<Recollection, EmitError>;

    /// Returns the run that made a call, if it has run or may have. Blocks.
    ///
    /// # Errors
    /// The memory can't be read.
    fn find_run(&self, call: &RecalledCall<'_>) -> Result<Option<EarlierRun>, EmitError>;

    /// Returns the result that a call which only reads had in this run or, without one, in a run of this log that didn't come to its
    /// end. Blocks.
    ///
    /// # Errors
    /// The memory can't be read.
    fn recall_read(
        &self,
        call: &RecalledCall<'_>,
        run: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, EmitError>;

    /// Whether a run of the same log didn't come to its end, so that what it read still counts.
    fn resumes_reads(&self) -> bool;

    /// Whether calls are remembered by their ids. Otherwise only those are whose tools run once for some of their values.
    fn remembers_ids(&self) -> bool;

    /// Whether questions are answered without blocking.
    fn is_at_hand(&self) -> bool;
}

/// The history of calls for who makes some: it is added to.
pub trait CallMemory: Debug + Send + Sync {
    /// Returns what says whether a call has run before.
    fn history(&self) -> &dyn CallHistory;

    /// Claims calls whose starts were recorded, durably. Without any, makes everything durable that was recorded so far. Returns at
    /// once.
    fn commit(&self, claims: Vec<(CallKey, CallClaim)>, done: CommitDone);

    /// Records what a probe found out about a call in doubt: its result if it was done, nothing if it wasn't. Blocks until that is
    /// durable.
    ///
    /// # Errors
    /// It can't be recorded.
    fn settle(
        &self,
        call: &CallRef,
        claim: &CallClaim,
        done: Option<&RestoredResult>,
    ) -> Result<(), EmitError>;

    /// Notes that a call waits for an approval, so that somebody can give it later. Blocks.
    ///
    /// # Errors
    /// The memory can't be read.
    fn ask(&self, call: &RecalledCall<'_>) -> Result<(), EmitError>;
}

/// A call that is looked up.
#[derive(Debug, Clone, Copy)]
pub struct RecalledCall<'a> {
    /// The call as requested.
    pub call: &'a Call,
    /// What would run, if the call may.
    pub accepted: Option<&'a AcceptedCall>,
    /// Where its turn comes from.
    pub origin: &'a TurnOrigin,
}

/// What the memory knows of a call.
#[derive(Debug, Clone)]
pub struct Recollection {
    /// What becomes of the call.
    pub verdict: MemoryVerdict,
    /// What was said about the question whether it may start, if it was asked before.
    pub approval: Option<Approval>,
    /// The run that made it, if it has run or may have.
    pub run: Option<EarlierRun>,
}

impl Recollection {
    /// Of a call that nothing names: it runs.
    pub const FORGETTABLE: Self = Self {
        verdict: MemoryVerdict::Forgettable,
        approval: None,
        run: None,
    };
}

/// A run that made a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierRun {
    /// The name of its log.
    pub log: String,
    /// The id of its session, unless the log is gone.
    pub session: Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone)]
pub enum MemoryVerdict {
    /// It runs, and nothing remembers it by its id or its values.
    Forgettable,
    /// It runs, once it is claimed.
    Run(CallClaim),
    /// It doesn't run. This is its outcome.
    Known(Box<Outcome>),
    /// It may have had its effect. Its probe finds out, or else this is its outcome.
    Probe(CallClaim, Box<Outcome>),
    /// Another run is at it.
    RunsElsewhere,
}

/// What stands for an attempt at a call in the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallClaim {
    /// Its name in the memory.
    pub name: String,
    /// The number of the attempt, counted from 1 over all runs.
    pub attempt: u32,
    /// How often the call was repeated on purpose.
    pub generation: u32,
    /// Why it is made, unless it is the first.
    pub again: Option<RunsAgain>,
    /// The key by which the callee recognizes a call that it gets twice.
    pub idempotency_key: String,
    /// By what `toolq log resolve` finds it.
    pub settle_id: String,
}

/// Why another attempt is made at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsAgain {
    /// The one before surely did nothing.
    DidNothing,
    /// Somebody, or the probe, said that the one before did nothing.
    SettledNotDone,
    /// It does no harm.
    Idempotent,
    /// It is wanted: `--new`, or the time for which its result counts is over.
    Renewed,
}

/// Called once a commit is done: with whether each claim is ours, or why nothing is durable.
pub type CommitDone = Box<dyn FnOnce(Result<Vec<bool>, EmitError>) + Send>;

/// Why a sink couldn't handle an event, as a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmitError(pub String);
