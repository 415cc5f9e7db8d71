//! The calls that the host runs, until it has sent their results.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::commands::run::control::message::{CallResult, LineId};
use crate::commands::run::control::open_turns::OpenTurns;
use crate::commands::run::control::reply_line::{call_line, cancel_call_line};
use toolq_core::types::CallRef;
use toolq_engine::{HostCall, HostFuture, HostReply, HostTools, LateResult, text_of_host_content};

/// How much of a late result is recorded, in bytes.
const MAX_LATE_BYTES: usize = 64 << 10;
/// How many abandoned calls are remembered, so that their late results can be distinguished from results of unknown calls.
const MAX_ABANDONED_CALLS: usize = 1024;

/// The calls that the host runs.
#[derive(Debug)]
pub(super) struct HostCalls {
    turns: Arc<OpenTurns>,
    table: Mutex<CallTable>,
}

#[derive(Debug, Default)]
struct CallTable {
    /// By their numbers, which no two calls or attempts share.
    pending: BTreeMap<u64, PendingCall>,
    /// The latest of those that timed out or were canceled.
    abandoned: BTreeMap<u64, CallName>,
    last_number: u64,
    /// Whether the host sends nothing more.
    is_closed: bool,
}

/// A call without a result.
#[derive(Debug)]
struct PendingCall {
    name: CallName,
    reply: oneshot::Sender<HostReply>,
}

/// How the host names a call.
#[derive(Debug, Clone)]
struct CallName {
    turn: LineId,
    call: CallRef,
}

/// What became of a result.
#[derive(Debug)]
pub(super) enum Delivery {
    /// The call has its result.
    Delivered,
    /// The call was answered without it, or by a later attempt, because the attempt had timed out or was canceled.
    Late(LateResult),
}

impl HostCalls {
    pub(super) fn new(turns: &Arc<OpenTurns>) -> Self {
        Self {
            turns: Arc::clone(turns),
            table: Mutex::default(),
        }
    }

    /// Passes a result of the host on.
    ///
    /// # Errors
    /// No such call waits for a result.
    pub(super) fn deliver(&self, turn: &LineId, result: CallResult) -> Result<Delivery, String> {
        let CallResult {
            tool_use_id,
            number,
            content,
            is_error,
        } = result;
        let is_meant = |at: u64, name: &CallName| {
            number.is_none_or(|number| number == at)
                && name.turn == *turn
                && name.call.tool_use_id == tool_use_id
        };
        let mut table = self.lock();
        let mut pending = table.pending.iter();
        let found = pending.find_map(|(at, call)| is_meant(*at, &call.name).then_some(*at));
        if let Some(call) = found.and_then(|at| table.pending.remove(&at)) {
            // A call that has just been given up needs no reply.
            let _ = call.reply.send(HostReply::Done { content, is_error });
            return Ok(Delivery::Delivered);
        }
        let mut abandoned = table.abandoned.iter();
        let found = abandoned.find_map(|(at, name)| is_meant(*at, name).then_some(*at));
        match found.and_then(|at| table.abandoned.remove(&at)) {
            Some(CallName { call, .. }) => Ok(Delivery::Late(LateResult {
                text: late_text(content.as_deref()),
                call,
                is_error,
            })),
            None => Err(format!(
                "no call {tool_use_id} of this turn waits for a result"
            )),
        }
    }

    /// No more results come. The calls that wait for one end.
    pub(super) fn close(&self) {
        let mut table = self.lock();
        table.is_closed = true;
        table.pending.clear();
    }

    async fn run_call(&self, call: &HostCall) -> HostReply {
        let lost = |was_sent, why: &str| HostReply::Lost {
            was_sent,
            why: why.to_owned(),
        };
        let outermost = call.call.ancestors().last();
        let number = outermost.map_or(call.call.turn, |call| call.turn);
        let Some(turn) = self.turns.id_of(number) else {
            return lost(false, "its turn has ended");
        };
        let Some((_guard, reply)) = self.send(call, turn) else {
            return lost(false, "it has closed its end of the pipe");
        };
        match reply.await {
            Ok(reply) => reply,
            Err(_) => lost(true, "it has closed its end of the pipe"),
        }
    }

    /// Sends a call to the host. Returns `None` if it is gone.
    fn send(
        &self,
        call: &HostCall,
        turn: LineId,
    ) -> Option<(CallGuard<'_>, oneshot::Receiver<HostReply>)> {
        let mut table = self.lock();
        if table.is_closed {
            return None;
        }
        let number = table.last_number + 1;
        let line = call_line(&turn, number, call).ok()?;
        table.last_number = number;
        let (sender, reply) = oneshot::channel();
        let name = CallName {
            turn,
            call: call.call.clone(),
        };
        let pending = PendingCall {
            name,
            reply: sender,
        };
        table.pending.insert(number, pending);
        // Before the lock is released, so that the host reads a call before it reads that it was given up.
        self.turns.send(line);
        let calls = self;
        Some((CallGuard { calls, number }, reply))
    }

    /// Abandons a call whose result is no longer awaited, and tells the host to cancel it.
    fn give_up(&self, number: u64) {
        let mut table = self.lock();
        let Some(call) = table.pending.remove(&number) else {
            return;
        };
        self.turns.send(cancel_call_line(
            &call.name.turn,
            number,
            &call.name.call.tool_use_id,
        ));
        table.abandoned.insert(number, call.name);
        if table.abandoned.len() > MAX_ABANDONED_CALLS {
            table.abandoned.pop_first();
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostTools for HostCalls {
    fn run<'a>(&'a self, call: &'a HostCall) -> HostFuture<'a> {
        Box::pin(self.run_call(call))
    }
}

/// When dropped, abandons a call that has no result yet, since nothing awaits the result anymore.
struct CallGuard<'a> {
    calls: &'a HostCalls,
    number: u64,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.calls.give_up(self.number);
    }
}

/// Returns what a late result says, shortened.
fn late_text(content: Option<&RawValue>) -> String {
    let mut text = text_of_host_content(content);
    text.truncate(text.floor_char_boundary(MAX_LATE_BYTES));
    text
}
