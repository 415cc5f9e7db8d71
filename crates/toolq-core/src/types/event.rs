//! Events: what happens to calls while they run.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::schedule::StartWait;
use crate::types::agent::{AgentUsage, ModelResponse};
use crate::types::answer::CallAnswer;
use crate::types::call::{CallRef, TurnOrigin};
use crate::types::config::{ToolsChange, UnlockedServer};
use crate::types::ending::{ServerEnd, ServerStart};
use crate::types::memory::{CallClaim, EmitError};
use crate::types::outcome::Outcome;
use crate::types::status::ProbeFinding;
use crate::types::tool::Tool;
use crate::types::verdict::{AcceptedCall, Approval, CallRequest, CheckedCall};

/// Something that happens to a call, emitted as it happens. One stream feeds the log, the terminal, and `--events`.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A turn begins. Its calls follow as `Queued`.
    TurnStarted {
        /// Its number.
        turn: usize,
        /// The call of the agent that the turn belongs to.
        parent: Option<&'a Arc<CallRef>>,
        /// Where it comes from.
        origin: &'a TurnOrigin,
    },
    /// More of the input of a streaming call has arrived.
    PartialInput {
        /// The call. It has no batch yet.
        call: &'a CallRef,
        /// The tool that it names, if there is one.
        tool: Option<&'a Tool>,
        /// The part of its input JSON that has arrived.
        input_so_far: &'a str,
    },
    /// A tool's `describe` program is about to start. It starts only if every sink accepts this event.
    Describing {
        /// The tool that describes itself.
        tool: &'a Tool,
    },
    /// A `describe` program has ended. Its output is stored in the tool, unless the program was interrupted.
    Described {
        /// The tool.
        tool: &'a Tool,
        /// How the program ended.
        outcome: &'a Outcome,
        /// From the first start to the end.
        duration: Duration,
        /// How many times it was started.
        attempts: u32,
    },
    /// A server that tools.lock doesn't have is about to be asked for its tools, and started for that if it isn't running. That
    /// happens only if every sink accepts this event.
    ListingTools {
        /// The server.
        server: &'a UnlockedServer,
    },
    /// Such a server has been asked. Its answer is stored with it, unless the run was halted before it came.
    ToolsListed {
        /// The server.
        server: &'a UnlockedServer,
        /// How long it took.
        duration: Duration,
    },
    /// A server is ready for calls, or has ended before it was.
    ServerStarted(&'a ServerStart),
    /// A server has ended.
    ServerEnded(&'a ServerEnd),
    /// The tools file was read again. Calls that were checked before keep their definitions.
    ToolsChanged(&'a ToolsChange),
    /// A call was queued or rejected. If rejected, its `Finished` follows immediately.
    Queued {
        /// The call and its verdict.
        checked: &'a CheckedCall,
        /// The batch in which it will run, or `None` if it won't.
        batch: Option<usize>,
    },
    /// The first call of a batch is about to start.
    BatchStarted {
        /// The turn.
        turn: usize,
        /// Counted from 0 within the turn.
        batch: usize,
        /// The calls of the batch that are known so far.
        calls: &'a [CallRef],
    },
    /// The approval of a call was requested.
    ApprovalRequested {
        /// The call.
        call: &'a CallRef,
        /// What would run.
        accepted: &'a AcceptedCall,
    },
    /// A call was approved or denied. It starts only if every sink accepts this event.
    ApprovalDecided {
        /// The call.
        call: &'a CallRef,
        /// What was said.
        approval: &'a Approval,
    },
    /// No decision about a call will be made, so the run stops.
    ApproverStopped {
        /// The call.
        call: &'a CallRef,
        /// Why.
        why: &'a str,
    },
    /// A call could start, but its tool, server or host limits how many run at once, or how far starts are apart.
    Throttled {
        /// The call.
        call: &'a CallRef,
        /// What it waits for.
        wait: &'a StartWait,
    },
    /// An attempt is about to start. It starts only if every sink accepts this event.
    Started {
        /// The call.
        call: &'a CallRef,
        /// What runs.
        accepted: &'a AcceptedCall,
        /// Counted from 1.
        attempt: u32,
        /// The same for all attempts of the call, in every run.
        idempotency_key: &'a str,
        /// What stands for it in the memory, if it is remembered.
        claim: Option<&'a CallClaim>,
        /// How long the attempt waited because of the limits of its tool, server or host. `None` if it didn't.
        waited: Option<Duration>,
    },
    /// A tool's probe is about to find out whether a call that an earlier run started has taken effect.
    Probing {
        /// The call.
        call: &'a CallRef,
    },
    /// The probe has ended. `Finished` follows, unless the call turned out not to be done.
    Probed {
        /// The call.
        call: &'a CallRef,
        /// What it found.
        finding: ProbeFinding,
        /// How the probe ended.
        outcome: &'a Outcome,
        /// How long the probe took.
        duration: Duration,
    },
    /// A status message for people, from the tool or from the engine.
    Status {
        /// The call.
        call: &'a CallRef,
        /// A short message.
        message: Option<&'a str>,
        /// From 0 to 1.
        progress: Option<f64>,
        /// What to show as the call's parameters, instead of its input.
        params: Option<&'a RawValue>,
        /// What to show as the call's result, instead of what the model receives.
        result: Option<&'a RawValue>,
    },
    /// An attempt failed and another follows.
    Retrying {
        /// The call.
        call: &'a CallRef,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// How it failed.
        outcome: &'a Outcome,
        /// How long the engine waits before the next attempt.
        wait: Duration,
    },
    /// A call has its result.
    Finished {
        /// The call.
        call: &'a CallRef,
        /// What was requested.
        request: CallRequest<'a>,
        /// How it ended.
        outcome: &'a Outcome,
        /// The result that the model receives.
        answer: &'a CallAnswer,
        /// From the first start to the end, or zero if it never started.
        duration: Duration,
        /// Number of attempts, or 0 if it never started.
        attempts: u32,
        /// What the agent used, if the call ran one.
        agent_usage: Option<&'a AgentUsage>,
        /// What stands for it in the memory, if it was claimed.
        claim: Option<&'a CallClaim>,
    },
    /// An agent starts working on a call.
    AgentStarted {
        /// The call.
        call: &'a CallRef,
        /// The agent's name.
        agent: &'a str,
    },
    /// An agent requests a response from its model.
    AgentProgress {
        /// The call that the agent works on.
        call: &'a CallRef,
        /// The agent's name.
        agent: &'a str,
        /// Counted from 0.
        turn: u64,
        /// The maximum number of turns.
        max_turns: u64,
    },
    /// A message in an agent's conversation, sent by the agent or received from its model.
    AgentMessage {
        /// The call that the agent works on.
        call: &'a CallRef,
        /// The message in the form that the agent's API uses.
        message: &'a RawValue,
        /// For a received message, the response that it came in.
        response: Option<&'a ModelResponse>,
        /// The agent's turn, counted from 0.
        turn: usize,
    },
    /// An agent has finished a call, whose `Finished` follows.
    AgentCompleted {
        /// The call.
        call: &'a CallRef,
        /// The agent's name.
        agent: &'a str,
        /// Since the agent started.
        duration: Duration,
    },
    /// A result was written to stdout.
    ResultWritten {
        /// The call.
        call: &'a CallRef,
    },
    /// The last event of a turn of the input: every call has its result. An agent's turns don't emit it.
    QueueDrained {
        /// The turn.
        turn: usize,
    },
}

/// Receives engine events. The engine knows nothing about logs or terminals beyond this trait.
pub trait EventSink: Send {
    /// Handles events in the order in which they happened. Events of one slice happened together.
    ///
    /// # Errors
    /// The sink can't record the events. Calls whose `Started` event is in the slice don't run. All other events still
    /// reach the remaining sinks.
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            self.handle_event(event);
        }
        Ok(())
    }

    /// Handles one event, in a sink that can't fail.
    fn handle_event(&mut self, _event: &Event<'_>) {}

    /// Handles an event that nothing depends on before the next `emit`, even of no events: a log may write its record together with
    /// others. The engine makes sure that there is an `emit` before it hands over a result, and before it waits.
    ///
    /// # Errors
    /// As for `emit`.
    fn emit_later(&mut self, event: &Event<'_>) -> Result<(), EmitError> {
        self.emit(slice::from_ref(event))
    }

    /// Returns whether the progress of a running call is shown. If not, servers aren't asked to report it.
    fn shows_progress(&self, _call: &CallRef) -> bool {
        true
    }
}
