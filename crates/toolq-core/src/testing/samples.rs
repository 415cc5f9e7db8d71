//! Tools, calls, and verdicts for unit tests, built without a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use crate::json::Input;
use crate::types::CacheNote;
use crate::types::{
    AcceptedCall, ApprovalPolicy, Call, CallAnswer, CallEnding, CallRef, CallReport, CallRequest,
    CallTimeouts, CaptureStats, CheckedCall, CommandInvocation, Compare, Effect, EmitError, Event,
    EventSink, Invocation, OnDoubt, OnFailure, Outcome, OutputKind, ProblemDetail, Rejection,
    RejectionReason, ResultContent, ResumeState, RetryPolicy, SafetyPolicy, SafetySource,
    StartLimits, StatusTemplates, StdinContent, Tool, ToolsConfig, TurnOrigin, Verdict,
};

/// Returns a tool that declares nothing but its name.
pub fn sample_tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: json!({"type": "object"}),
        describe: None,
        awaits_list: false,
        safety: SafetyPolicy::Default,
        approve: ApprovalPolicy::Never,
        locks: None,
        start_limits: StartLimits::default(),
        effect: Effect::Write,
        destructive: None,
        open_world: None,
        timeout: CallTimeouts {
            after: Duration::from_secs(30),
            kill_grace: Duration::from_secs(2),
            slow_after: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: StatusTemplates::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        empty_output: None,
        output_schema: None,
        rule_settings: Vec::new(),
        max_output: 64 << 10,
        max_saved: 64 << 20,
        retry: RetryPolicy {
            max_retries: 1,
            conditions: Vec::new(),
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
        },
        on_failure: OnFailure::Continue,
        on_doubt: OnDoubt::default(),
        pause_after_failures: None,
        coerce: true,
        compare: Compare::Json,
        ignore: Vec::new(),
        normalize: Vec::new(),
        cache: None,
        messages: BTreeMap::new(),
    }
}

/// Returns a tools file with these tools.
pub fn sample_tools(tools: Vec<Tool>) -> ToolsConfig {
    ToolsConfig {
        tools: tools.into_iter().map(Arc::new).collect(),
        concurrency: std::num::NonZeroUsize::MIN,
        root: PathBuf::from("/root"),
        dir: PathBuf::from("/root"),
        servers: Vec::new(),
        unlocked: Vec::new(),
        own_files: Vec::new(),
        env_file: crate::types::EnvFile::default(),
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        hosts: Vec::new(),
        prices: crate::types::PriceTable::default(),
        formats: crate::types::FormatPolicy::Annotate,
        digest: "00".repeat(32),
    }
}

/// Returns a call in turn 0 with the id `toolu_POSITION`.
pub fn sample_call(position: usize, name: &str, input: &str) -> Call {
    Call {
        turn: 0,
        position,
        id: format!("toolu_{position}"),
        name: name.into(),
        input: Input::parse(input).map_err(Box::new),
        parent: None,
    }
}

/// Returns a call of `tool` that may run. Its safety is decided by a rule.
pub fn accepted_call(position: usize, tool: Tool, safe: bool, input: &str) -> CheckedCall {
    let call = sample_call(position, &tool.name, input);
    let verdict = Verdict::Accepted(Box::new(AcceptedCall {
        tool: Arc::new(tool),
        input: Input::parse(input).unwrap_or_else(|_| Input::empty()),
        before_coercion: None,
        is_coerced: false,
        safe,
        safety_source: SafetySource::Rule(if safe { "get_*" } else { "save_*" }.into()),
        locks: None,
        needs_approval: false,
        invocation: None,
        probe: None,
    }));
    CheckedCall {
        call,
        verdict,
        resume_state: ResumeState::NotStarted,
    }
}

/// Returns a call of a tool with this name and estimate.
pub fn call_with_estimate(position: usize, name: &str, seconds: u64, safe: bool) -> CheckedCall {
    let estimate = Some(Duration::from_secs(seconds));
    let tool = Tool {
        estimate,
        ..sample_tool(name)
    };
    accepted_call(position, tool, safe, "{}")
}

/// Returns a call of an unknown tool.
pub fn rejected_call(position: usize, name: &str) -> CheckedCall {
    CheckedCall {
        call: sample_call(position, name, "{}"),
        verdict: Verdict::rejected(Rejection {
            reason: RejectionReason::UnknownTool,
            details: vec![ProblemDetail::new(
                "",
                "no tool has this name; did you mean `read_file`?",
            )],
        }),
        resume_state: ResumeState::NotStarted,
    }
}

/// Returns the same call, running this program.
pub fn with_program(mut checked: CheckedCall, argv: &[&str]) -> CheckedCall {
    if let Verdict::Accepted(accepted) = &mut checked.verdict {
        accepted.invocation = Some(Invocation::Command(CommandInvocation {
            argv: argv.iter().collect(),
            stdin: StdinContent::None,
            env: Box::default(),
            sandbox: None,
        }));
    }
    checked
}

/// Returns the outcome of a program that wrote `text` and exited successfully.
pub fn success_outcome(text: &str) -> Outcome {
    Outcome::Succeeded {
        content: ResultContent::Text(text.to_owned()),
        captured: CaptureStats {
            total_bytes: text.len() as u64,
            ..CaptureStats::default()
        },
        ending: CallEnding::ExitCode(0),
        for_clients: None,
    }
}

/// Returns the result that the model receives for a call.
pub fn sample_answer(call: &CallRef, text: &str, is_error: bool) -> CallAnswer {
    CallAnswer {
        tool_use_id: call.tool_use_id.clone(),
        tool_name: call.tool_name.to_string(),
        content: ResultContent::Text(text.to_owned()),
        is_error,
        for_clients: None,
        report: CallReport::default(),
    }
}

/// Emits the end of a call that took this many milliseconds and attempts.
///
/// # Errors
/// The sink refuses the event.
pub fn emit_finished(
    sink: &mut dyn EventSink,
    call: &CallRef,
    outcome: &Outcome,
    text: &str,
    (ms, attempts): (u64, u32),
) -> Result<(), EmitError> {
    let requested = Call {
        turn: call.turn,
        position: call.position,
        id: call.tool_use_id.clone(),
        name: Arc::clone(&call.tool_name),
        input: Ok(Input::empty()),
        parent: call.parent.clone(),
    };
    sink.emit(&[Event::Finished {
        call,
        request: CallRequest {
            call: &requested,
            accepted: None,
        },
        outcome,
        answer: &sample_answer(call, text, outcome.is_error()),
        duration: Duration::from_millis(ms),
        attempts,
        agent_usage: None,
        cache: &CacheNote::default(),
    }])
}

/// Emits the events of a turn whose calls form one batch. Calls that run succeed with this text.
///
/// # Errors
/// The sink refuses an event.
pub fn emit_turn(
    sink: &mut dyn EventSink,
    checked: &[CheckedCall],
    text: &str,
) -> Result<(), EmitError> {
    let turn = checked.first().map_or(0, |checked| checked.call.turn);
    sink.emit(&[Event::TurnStarted {
        turn,
        parent: None,
        origin: &TurnOrigin::default(),
    }])?;
    let mut running = Vec::new();
    for checked in checked {
        emit_queued(sink, checked, &mut running)?;
    }
    let calls: Vec<_> = running.iter().map(|(call, _)| call.clone()).collect();
    sink.emit(&[Event::BatchStarted {
        turn,
        batch: 0,
        calls: &calls,
    }])?;
    for (call, accepted) in &running {
        sink.emit(&[Event::Started {
            call,
            accepted,
            attempt: 1,
            idempotency_key: "key",
            waited: None,
        }])?;
    }
    for (call, _) in &running {
        emit_finished(sink, call, &success_outcome(text), text, (1_500, 1))?;
    }
    for checked in checked {
        let call = &CallRef::new(&checked.call, None);
        sink.emit(&[Event::ResultWritten { call }])?;
    }
    sink.emit(&[Event::QueueDrained { turn }])
}

fn emit_queued<'a>(
    sink: &mut dyn EventSink,
    checked: &'a CheckedCall,
    running: &mut Vec<(CallRef, &'a AcceptedCall)>,
) -> Result<(), EmitError> {
    match &checked.verdict {
        Verdict::Accepted(accepted) => {
            running.push((CallRef::new(&checked.call, Some(0)), accepted));
            sink.emit(&[Event::Queued {
                checked,
                batch: Some(0),
            }])
        }
        Verdict::Rejected(rejection) => {
            sink.emit(&[Event::Queued {
                checked,
                batch: None,
            }])?;
            let call = CallRef::new(&checked.call, None);
            let outcome = Outcome::Rejected((**rejection).clone());
            emit_finished(sink, &call, &outcome, "Unknown tool.", (0, 0))
        }
    }
}

/// Generates text that a model or a tool could write to end a line or forge a record.
pub fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("\n{\"seq\":0,\"type\":\"session_end\"}\n".to_owned()),
        Just("\r\u{85}\u{2028}\u{2029}\u{0}\u{b}\u{c}\u{1e}\"},\"crc\":\"00000000\"}".to_owned()),
    ]
}
