use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::types::agent::{AgentUse, Response};
use crate::types::answer::Answer;
use crate::types::call::CallRef;
use crate::types::outcome::Outcome;
use crate::types::tool::Tool;
use crate::types::verdict::{Accepted, Checked};

/// What happens to calls, told as it happens. One stream feeds the log, the screen and `--events`.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A turn begins. Its calls follow as `Queued`.
    TurnStarted {
        /// Its number.
        turn: usize,
        /// The call of the agent whose turn it is.
        within: Option<&'a Arc<CallRef>>,
    },
    /// More is known of the input of a call that is still being spoken.
    Part {
        /// The call, which has no batch yet.
        call: &'a CallRef,
        /// The JSON of its input as far as it is there.
        text: &'a str,
    },
    /// A tool is about to be asked what it takes. It is asked only if every sink agreed.
    Describing {
        /// The tool, which describes itself.
        tool: &'a Tool,
    },
    /// It was asked. What it said stands with it; nothing does where it was ended midway.
    Described {
        /// The tool.
        tool: &'a Tool,
        /// How its program ended.
        outcome: &'a Outcome,
        /// From its first start to its end.
        duration: Duration,
        /// How often it was started.
        attempts: u32,
    },
    /// A call took its place in the queue, or was rejected: then its `Finished` follows at once.
    Queued {
        /// The call and its verdict.
        checked: &'a Checked,
        /// The batch in which it will run; none for a call that will not.
        batch: Option<usize>,
    },
    /// The first call of a batch is about to start.
    BatchStarted {
        /// The turn.
        turn: usize,
        /// Counted from 0 within the turn.
        batch: usize,
        /// The calls of the batch that are known by now.
        calls: &'a [CallRef],
    },
    /// An attempt is about to start. It starts only if every sink agreed.
    Started {
        /// The call.
        call: &'a CallRef,
        /// What runs.
        accepted: &'a Accepted,
        /// Counted from 1.
        attempt: u32,
        /// The same for all attempts of the call, on every run.
        idempotency_key: &'a str,
    },
    /// The tool's probe is about to be asked whether a call, started by an earlier run, did its work.
    Probing {
        /// The call.
        call: &'a CallRef,
    },
    /// The probe has answered. Unless it found the work not done, `Finished` follows.
    Probed {
        /// The call.
        call: &'a CallRef,
        /// What it found.
        finding: Finding,
        /// How it ended.
        outcome: &'a Outcome,
        /// How long it took.
        duration: Duration,
    },
    /// The tool's own words, or the engine's, for people.
    Status {
        /// The call.
        call: &'a CallRef,
        /// A short text.
        tip: Option<&'a str>,
        /// From 0 to 1.
        progress: Option<f64>,
    },
    /// An attempt failed and another follows.
    Retrying {
        /// The call.
        call: &'a CallRef,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// How it failed.
        outcome: &'a Outcome,
        /// Until the next one.
        wait: Duration,
    },
    /// A call has its result.
    Finished {
        /// The call and its verdict.
        call: &'a CallRef,
        /// How it ended.
        outcome: &'a Outcome,
        /// What the model reads of it.
        answer: &'a Answer,
        /// From the first start to the end; zero where it never started.
        duration: Duration,
        /// How many attempts there were; 0 where it never started.
        attempts: u32,
        /// What it used, where an agent worked on it.
        agent: Option<&'a AgentUse>,
    },
    /// An agent begins to work on a call.
    AgentStarted {
        /// The call.
        call: &'a CallRef,
        /// The agent's name.
        agent: &'a str,
    },
    /// An agent asks its model.
    AgentProgress {
        /// The call that it works on.
        call: &'a CallRef,
        /// The agent's name.
        agent: &'a str,
        /// Counted from 1.
        turn: u64,
        /// How many there may be.
        max_turns: u64,
    },
    /// A message of an agent's conversation: what it sends, or what its model answered.
    AgentMessage {
        /// The call that it works on.
        call: &'a CallRef,
        /// As its API has it.
        message: &'a RawValue,
        /// The answer that it was in, and the request's digest.
        response: Option<(&'a Response, &'a str)>,
        /// The agent's turn, counted from 0.
        turn: usize,
    },
    /// An agent is done with a call; its `Finished` follows.
    AgentCompleted {
        /// The call.
        call: &'a CallRef,
        /// The agent's name.
        agent: &'a str,
        /// From its start.
        duration: Duration,
    },
    /// A result went to stdout.
    ResultWritten {
        /// The call.
        call: &'a CallRef,
    },
    /// The last event of a turn of the input: every call has its result. Turns of agents end without.
    QueueDrained {
        /// The turn.
        turn: usize,
    },
}

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The call did its work; the probe's output is its result.
    Done,
    /// It did not.
    NotDone,
    /// Nobody can say.
    Unknown,
}

impl Finding {
    /// The word of the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not_done",
            Self::Unknown => "unknown",
        }
    }
}
