//! Tools, calls and verdicts for unit tests, built without a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use crate::json::Input;
use crate::types::{
    Accepted, Answer, Call, CallRef, Captured, Checked, CommandInvocation, Compare, Content,
    DecidedBy, Detail, Effect, Ending, Event, Invocation, OnFailure, Outcome, OutputKind, Past,
    Reason, Refused, Rejection, Retry, Safety, Sink, Status, StdinDraft, Timeout, Tool, Tools,
    Verdict,
};

/// A tool that says nothing but its name.
pub fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: json!({"type": "object"}),
        describe: None,
        safety: Safety::Default,
        effect: Effect::Write,
        timeout: Timeout {
            after: Duration::from_secs(30),
            grace: Duration::from_secs(2),
            slow: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: Status::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        max_output: 64 << 10,
        max_saved: 64 << 20,
        retry: Retry {
            times: 1,
            on: Vec::new(),
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
        },
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        coerce: true,
        compare: Compare::Json,
        ignore: Vec::new(),
        messages: BTreeMap::new(),
    }
}

/// A file of these tools.
pub fn tools(tools: Vec<Tool>) -> Tools {
    Tools {
        tools: tools.into_iter().map(Arc::new).collect(),
        concurrency: std::num::NonZeroUsize::MIN,
        root: PathBuf::from("/root"),
        dir: PathBuf::from("/root"),
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        prices: crate::types::Prices::default(),
        digest: "00".repeat(32),
    }
}

/// A call of turn 0 with the id `toolu_POSITION`.
pub fn call(position: usize, name: &str, input: &str) -> Call {
    Call {
        turn: 0,
        position,
        id: format!("toolu_{position}"),
        name: name.to_owned(),
        input: Input::parse(input),
        within: None,
    }
}

/// A call of `tool` that may run, decided by a rule.
pub fn accepted(position: usize, tool: Tool, safe: bool, input: &str) -> Checked {
    let call = call(position, &tool.name, input);
    let verdict = Verdict::Accepted(Box::new(Accepted {
        tool: Arc::new(tool),
        input: Input::parse(input).unwrap_or_else(|_| Input::empty()),
        before_coercion: None,
        safe,
        decided_by: DecidedBy::Rule(if safe { "get_*" } else { "save_*" }.to_owned()),
        invocation: None,
        probe: None,
    }));
    Checked {
        call,
        verdict,
        past: Past::None,
    }
}

/// A call of a tool of this name and estimate.
pub fn timed(position: usize, name: &str, seconds: u64, safe: bool) -> Checked {
    let estimate = Some(Duration::from_secs(seconds));
    let tool = Tool {
        estimate,
        ..tool(name)
    };
    accepted(position, tool, safe, "{}")
}

/// A call that no tool answers.
pub fn rejected(position: usize, name: &str) -> Checked {
    Checked {
        call: call(position, name, "{}"),
        verdict: Verdict::Rejected(Rejection {
            reason: Reason::UnknownTool,
            details: vec![Detail {
                path: String::new(),
                message: "no tool has this name; did you mean `read_file`?".to_owned(),
            }],
        }),
        past: Past::None,
    }
}

/// The same call, running this program.
pub fn running(mut checked: Checked, argv: &[&str]) -> Checked {
    if let Verdict::Accepted(accepted) = &mut checked.verdict {
        accepted.invocation = Some(Invocation::Command(CommandInvocation {
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            stdin: StdinDraft::None,
            env: Vec::new(),
        }));
    }
    checked
}

/// How a program that wrote `text` and ended well ended.
pub fn succeeded(text: &str) -> Outcome {
    Outcome::Succeeded {
        content: Content::Text(text.to_owned()),
        captured: Captured {
            bytes: text.len() as u64,
            ..Captured::default()
        },
        ending: Ending::Exit(0),
    }
}

/// What a model reads of a call.
pub fn answer(call: &CallRef, text: &str, is_error: bool) -> Answer {
    Answer {
        tool_use_id: call.tool_use_id.clone(),
        tool_name: call.tool_name.clone(),
        content: Content::Text(text.to_owned()),
        is_error,
    }
}

/// Emits the end of a call that took this many milliseconds and attempts.
///
/// # Errors
/// The sink refuses it.
pub fn finish(
    sink: &mut dyn Sink,
    call: &CallRef,
    outcome: &Outcome,
    text: &str,
    (ms, attempts): (u64, u32),
) -> Result<(), Refused> {
    sink.tell(&[Event::Finished {
        call,
        outcome,
        answer: &answer(call, text, outcome.is_error()),
        duration: Duration::from_millis(ms),
        attempts,
        agent: None,
    }])
}

/// Emits the events of a turn whose calls form one batch; those that run succeed with this text.
///
/// # Errors
/// The sink refuses an event.
pub fn play(sink: &mut dyn Sink, checked: &[Checked], text: &str) -> Result<(), Refused> {
    let turn = checked.first().map_or(0, |checked| checked.call.turn);
    sink.tell(&[Event::TurnStarted { turn, within: None }])?;
    let mut running = Vec::new();
    for checked in checked {
        queue(sink, checked, &mut running)?;
    }
    let calls: Vec<_> = running.iter().map(|(call, _)| call.clone()).collect();
    sink.tell(&[Event::BatchStarted {
        turn,
        batch: 0,
        calls: &calls,
    }])?;
    for (call, accepted) in &running {
        sink.tell(&[Event::Started {
            call,
            accepted,
            attempt: 1,
            idempotency_key: "key",
        }])?;
    }
    for (call, _) in &running {
        finish(sink, call, &succeeded(text), text, (1_500, 1))?;
    }
    for checked in checked {
        let call = &CallRef::new(&checked.call, None);
        sink.tell(&[Event::ResultWritten { call }])?;
    }
    sink.tell(&[Event::QueueDrained { turn }])
}

fn queue<'a>(
    sink: &mut dyn Sink,
    checked: &'a Checked,
    running: &mut Vec<(CallRef, &'a Accepted)>,
) -> Result<(), Refused> {
    match &checked.verdict {
        Verdict::Accepted(accepted) => {
            running.push((CallRef::new(&checked.call, Some(0)), accepted));
            sink.tell(&[Event::Queued {
                checked,
                batch: Some(0),
            }])
        }
        Verdict::Rejected(rejection) => {
            sink.tell(&[Event::Queued {
                checked,
                batch: None,
            }])?;
            let call = CallRef::new(&checked.call, None);
            let outcome = Outcome::Rejected(rejection.clone());
            finish(sink, &call, &outcome, "Unknown tool.", (0, 0))
        }
    }
}

/// Texts that a model or a tool could write to end a line or begin a record.
pub fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("\n{\"seq\":0,\"type\":\"session_end\"}\n".to_owned()),
        Just("\r\u{85}\u{2028}\u{2029}\u{0}\u{b}\u{c}\u{1e}\"},\"crc\":\"00000000\"}".to_owned()),
    ]
}
