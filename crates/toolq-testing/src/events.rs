//! Outcomes, events and texts.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use toolq_core::json::Input;
use toolq_core::types::{
    AcceptedCall, Call, CallAnswer, CallEnding, CallKind, CallRef, CallReport, CallRequest,
    CaptureStats, CheckedCall, EmitError, Event, EventSink, Outcome, ResultContent, TurnOrigin,
    Verdict,
};

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
        has_number_id: false,
        kind: CallKind::Function,
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
        has_number_id: false,
        kind: CallKind::Function,
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
        claim: None,
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
            claim: None,
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
