//! A session log as Chrome trace events, which Perfetto and `chrome://tracing` open.
//!
//! Calls that ran at the same time are in different lanes. An agent's call and those that it made, one after the other, may share
//! one: within a lane, spans nest or follow each other, as viewers require.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU> is the description of the format.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::timeline::{LogTimeline, TimelineCall};

/// The process of all events. Lanes are its threads, numbered after it: viewers take thread 0 for an idle processor, and a thread
/// with the number of its process for the main one.
const PROCESS: u64 = 1;

/// Returns the trace of a log as one JSON object with an event per line. `title` names the process in the viewer.
pub(super) fn write_trace_events(timeline: &LogTimeline, title: &str) -> String {
    let lanes = assign_lanes(timeline);
    let mut events = vec![name_event("process_name", 0, title)];
    let count = lanes.iter().max().map_or(0, |last| last + 1);
    for lane in 0..count {
        events.push(name_event(
            "thread_name",
            lane,
            &format!("lane {}", lane + 1),
        ));
    }
    for run in &timeline.runs {
        events.push(json!({
            "name": "run begins", "cat": "run", "ph": "i", "s": "p",
            "ts": micros(run.started_ms), "pid": PROCESS, "tid": thread(0),
        }));
    }
    for (call, lane) in timeline.calls.iter().zip(lanes) {
        push_call(call, timeline, lane, &mut events);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!(
        "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}",
        lines.join(",\n")
    )
}

/// Adds the event of a call, and one for each attempt if there are several. A call that never ran takes no time.
fn push_call(call: &TimelineCall, timeline: &LogTimeline, lane: usize, events: &mut Vec<Value>) {
    let start = call.started_ms().unwrap_or(call.requested_ms);
    let end = timeline.end_of(call).max(start);
    let end = if call.attempts.is_empty() { start } else { end };
    let complete = |name: &str, category: &str, from: u64, to: u64, arguments: Value| {
        json!({
            "name": name, "cat": category, "ph": "X", "ts": micros(from), "dur": micros(to - from),
            "pid": PROCESS, "tid": thread(lane), "args": arguments,
        })
    };
    let output = call.end.as_ref().map(|end| end.output.as_str());
    let arguments = json!({
        "tool_use_id": call.tool_use_id,
        "outcome": call.outcome.label(),
        "end": call.end.as_ref().map(|end| end.label.as_str()),
        "turn": call.turn,
        "position": call.position,
        "batch": call.batch,
        "waited_ms": start - call.requested_ms.min(start),
        "attempts": call.attempts.len(),
        "input": call.input,
        "output": output,
        "log_line": call.line,
    });
    events.push(complete(
        &call.tool_name,
        call.outcome.label(),
        start,
        end,
        arguments,
    ));
    if call.was_retried() {
        for (index, attempt) in call.attempts.iter().enumerate() {
            let failure = attempt.failure.as_ref();
            let to = failure
                .map_or(end, |(_, ended)| *ended)
                .clamp(attempt.started_ms, end.max(attempt.started_ms));
            let status = failure.map(|(status, _)| status.as_str().to_owned());
            let name = format!("attempt {}", index + 1);
            events.push(complete(
                &name,
                "attempt",
                attempt.started_ms,
                to,
                json!({"status": status}),
            ));
        }
    }
}

fn name_event(kind: &str, lane: usize, name: &str) -> Value {
    json!({"name": kind, "ph": "M", "pid": PROCESS, "tid": thread(lane), "args": {"name": name}})
}

/// Returns the number of the thread that a lane is.
fn thread(lane: usize) -> u64 {
    PROCESS + 1 + lane as u64
}

/// Trace events count in microseconds.
fn micros(ms: u64) -> u64 {
    ms.saturating_mul(1000)
}

/// Calls that are open in a lane, the innermost last: each with its end.
type OpenSpans = Vec<(usize, u64)>;

/// Returns the lane of each call, counted from 0.
fn assign_lanes(timeline: &LogTimeline) -> Vec<usize> {
    let calls = &timeline.calls;
    let span = |index: usize| {
        let call = &calls[index];
        let start = call.started_ms().unwrap_or(call.requested_ms);
        let ran = !call.attempts.is_empty();
        (
            start,
            if ran {
                timeline.end_of(call).max(start)
            } else {
                start
            },
        )
    };
    let mut order: Vec<usize> = (0..calls.len()).collect();
    // A call that contains others comes before them.
    order.sort_by_key(|index| {
        let (start, end) = span(*index);
        (start, Reverse(end), *index)
    });
    let mut lanes: Vec<OpenSpans> = Vec::new();
    let mut assigned = vec![0; calls.len()];
    for index in order {
        let (start, end) = span(index);
        for lane in &mut lanes {
            while lane.last().is_some_and(|(_, ended)| *ended <= start) {
                lane.pop();
            }
        }
        let parent = calls[index].parent;
        let fits = |lane: &OpenSpans| match lane.last() {
            None => true,
            Some((outer, outer_end)) => parent == Some(*outer) && end <= *outer_end,
        };
        // Best below its agent, else in a free lane.
        let below = lanes.iter().position(|lane| !lane.is_empty() && fits(lane));
        let lane = below
            .or_else(|| lanes.iter().position(fits))
            .unwrap_or_else(|| {
                lanes.push(OpenSpans::new());
                lanes.len() - 1
            });
        lanes[lane].push((index, end));
        assigned[index] = lane;
    }
    assigned
}
