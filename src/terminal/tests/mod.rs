//! The same turn, as each sink shows it.

mod bars;
mod fake_terminal;

use crate::events::NdjsonSink;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::terminal::call_caption::truncate_closed;

use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{
    CallEnding, CallOutput, CallRef, CheckedCall, Event, EventSink, Outcome, StatusTemplates,
    Template, TemplatePart, Tool, Verdict,
};
use toolq_testing::{
    accepted_call, call_with_estimate, emit_finished, emit_turn, hostile_text, rejected_call,
    sample_tool, sample_tools,
};

const JOBS: NonZeroUsize = NonZeroUsize::new(10).unwrap();

/// A writer whose content the test can read.
#[derive(Clone, Debug, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl OutputBuffer {
    fn to_text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a clock that advances by half a second each time it is read.
fn ticking_clock() -> Clock {
    let ms = AtomicU64::new(0);
    Clock::new(move || ms.fetch_add(500, Ordering::Relaxed))
}

fn mask() -> Arc<Mask> {
    Arc::new(Mask::new(["s3cr3t-value"]))
}

/// Returns a call with a status text and a secret, one that is rejected, and one without a status text.
fn sample_calls() -> [CheckedCall; 3] {
    let path = TemplatePart::Value {
        path: vec!["path".to_owned()],
        optional: false,
        splat: false,
    };
    let doing = Template {
        parts: vec![TemplatePart::Text("reading ".to_owned()), path],
    };
    let read = Tool {
        display_name: Some("Read".to_owned()),
        status: StatusTemplates {
            wait: None,
            doing: Some(doing),
        },
        ..sample_tool("read_file")
    };
    let input = r#"{"path": "s3cr3t-value\u001b[2J", "n": 1.00}"#;
    [
        accepted_call(0, read, true, input),
        rejected_call(1, "no\x1b[31mbody"),
        call_with_estimate(2, "get", 1, true),
    ]
}

/// Emits that a call is queued, and that it starts.
fn emit_start(sink: &mut dyn EventSink, checked: &CheckedCall) {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    let queued = Event::Queued {
        checked,
        batch: Some(0),
    };
    let started = Event::Started {
        call: &CallRef::new(&checked.call, Some(0)),
        accepted,
        attempt: 1,
        idempotency_key: "key",
        claim: None,
        waited: None,
    };
    sink.emit(&[queued, started]).unwrap();
}

/// Emits a failed attempt, two statuses of the tool, and a timeout.
fn emit_retry_and_timeout(sink: &mut dyn EventSink, checked: &CheckedCall) {
    let call = &CallRef::new(&checked.call, Some(0));
    let failed = Outcome::Failed {
        output: CallOutput::default(),
        ending: CallEnding::HttpStatus(503),
    };
    let timed_out = Outcome::TimedOut {
        no_calls_started: false,
        limit: Duration::from_secs(30),
        output: CallOutput::default(),
    };
    let retrying = Event::Retrying {
        call,
        attempt: 1,
        outcome: &failed,
        wait: Duration::from_millis(1_200),
    };
    let status = Event::Status {
        call,
        message: Some("half\x1b[1m way"),
        progress: Some(0.5),
        params: None,
        result: None,
    };
    emit_start(sink, checked);
    sink.emit(&[retrying, status.clone(), status]).unwrap();
    emit_finished(sink, call, &timed_out, "Timed out.", (30_000, 2)).unwrap();
    sink.emit(&[Event::ResultWritten { call }]).unwrap();
}

/// Numbers keep their digits, and secrets don't appear.
#[test]
fn events_are_json_lines_with_secrets_masked() {
    let output = OutputBuffer::default();
    let reader = Box::new(output.clone());
    let mut stream = NdjsonSink::new(reader, mask(), Clock::new(|| 7)).unwrap();
    emit_turn(&mut stream, &sample_calls(), "done\u{2028}").unwrap();
    emit_retry_and_timeout(&mut stream, &call_with_estimate(3, "wait", 1, false));
    assert_eq!(stream.finish(), None);
    let text = output.to_text();
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["timestamp"], 7);
    }
    assert_snapshot!(text.replace("\"timestamp\":7,\"turn\":0,", ""), @r#"
    {"type":"tool_queued","tool_use_id":"toolu_0","tool_name":"read_file","position":0,"state":{"state":"wait","params":{"path": "[masked]\u001b[2J", "n": 1.00}}}
    {"type":"tool_queued","tool_use_id":"toolu_1","tool_name":"no\u001b[31mbody","position":1,"state":{"state":"wait","params":{}}}
    {"type":"tool_error","tool_use_id":"toolu_1","tool_name":"no\u001b[31mbody","status":"unknown_tool","state":{"state":"error","params":{},"result":"Unknown tool."}}
    {"type":"tool_queued","tool_use_id":"toolu_2","tool_name":"get","position":2,"state":{"state":"wait","params":{}}}
    {"type":"batch_started","batch":0,"calls":[{"position":0,"tool_use_id":"toolu_0","tool_name":"read_file"},{"position":2,"tool_use_id":"toolu_2","tool_name":"get"}]}
    {"type":"tool_started","tool_use_id":"toolu_0","tool_name":"read_file","attempt":1,"state":{"state":"doing","tip":"reading [masked]\u001b[2J","params":{"path": "[masked]\u001b[2J", "n": 1.00}}}
    {"type":"tool_started","tool_use_id":"toolu_2","tool_name":"get","attempt":1,"state":{"state":"doing","params":{}}}
    {"type":"tool_completed","tool_use_id":"toolu_0","tool_name":"read_file","duration_ms":1500,"success":true,"status":"ok","state":{"state":"success","tip":"reading [masked]\u001b[2J","params":{"path":"[masked]\u001b[2J","n":1.00},"result":"done\u2028"}}
    {"type":"tool_completed","tool_use_id":"toolu_2","tool_name":"get","duration_ms":1500,"success":true,"status":"ok","state":{"state":"success","params":{},"result":"done\u2028"}}
    {"type":"result_written","tool_use_id":"toolu_0","tool_name":"read_file","state":{"state":"success","tip":"reading [masked]\u001b[2J","params":{"path":"[masked]\u001b[2J","n":1.00},"result":"done\u2028"}}
    {"type":"result_written","tool_use_id":"toolu_1","tool_name":"no\u001b[31mbody","state":{"state":"error","params":{},"result":"Unknown tool."}}
    {"type":"result_written","tool_use_id":"toolu_2","tool_name":"get","state":{"state":"success","params":{},"result":"done\u2028"}}
    {"type":"queue_drained","timestamp":7,"turn":0}
    {"type":"tool_queued","tool_use_id":"toolu_3","tool_name":"wait","position":3,"state":{"state":"wait","params":{}}}
    {"type":"tool_started","tool_use_id":"toolu_3","tool_name":"wait","attempt":1,"state":{"state":"doing","params":{}}}
    {"type":"tool_status","tool_use_id":"toolu_3","tool_name":"wait","state":{"state":"doing","tip":"HTTP 503, attempt 2 in 1.2s","params":{}}}
    {"type":"tool_status","tool_use_id":"toolu_3","tool_name":"wait","state":{"state":"doing","tip":"half\u001b[1m way","progress":0.5,"params":{}}}
    {"type":"tool_status","tool_use_id":"toolu_3","tool_name":"wait","state":{"state":"doing","tip":"half\u001b[1m way","progress":0.5,"params":{}}}
    {"type":"tool_error","tool_use_id":"toolu_3","tool_name":"wait","status":"timeout","state":{"state":"error","tip":"half\u001b[1m way","progress":0.5,"params":{},"result":"Timed out."}}
    {"type":"result_written","tool_use_id":"toolu_3","tool_name":"wait","state":{"state":"error","tip":"half\u001b[1m way","progress":0.5,"params":{},"result":"Timed out."}}
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No text can add an event or a line, or reach a terminal as a control sequence.
    #[test]
    fn no_text_forges_an_event(id in hostile_text(), name in hostile_text(), text in hostile_text()) {
        let mut call = accepted_call(0, sample_tool(&name), true, "{}");
        call.call.id = id;
        let (events, build) = (OutputBuffer::default(), OutputBuffer::default());
        let mut stream = NdjsonSink::new(Box::new(events.clone()), mask(), ticking_clock()).unwrap();
        let mut lines = ProgressLines::new(Box::new(build.clone()), JOBS, mask(), ticking_clock());
        emit_turn(&mut stream, std::slice::from_ref(&call), &text).unwrap();
        emit_turn(&mut lines, &[call], &text).unwrap();
        prop_assert_eq!(stream.finish(), None);
        prop_assert_eq!(events.to_text().lines().count(), 6);
        prop_assert_eq!(build.to_text().lines().count(), 1);
        prop_assert!(!build.to_text().trim_end_matches('\n').contains(char::is_control));
    }
}

#[test]
fn a_build_log_gets_one_line_per_event() {
    let output = OutputBuffer::default();
    let mut lines = ProgressLines::new(Box::new(output.clone()), JOBS, mask(), ticking_clock());
    emit_turn(&mut lines, &sample_calls(), "done").unwrap();
    emit_retry_and_timeout(&mut lines, &call_with_estimate(3, "wait", 1, false));
    assert_snapshot!(output.to_text(), @r"
    rejected: #1 no\x1b[31mbody toolu_1: unknown tool: no tool has this name; did you mean `read_file`?
    a batch of 2 calls
    #0 Read: ok, 1.5s (reading [masked]\x1b[2J)
    #2 get: ok, 1.5s
    #3 wait: HTTP 503, attempt 2 in 1.2s
    #3 wait: half\x1b[1m way
    failed: #3 wait toolu_3: timeout after 30s
    ");
}

#[test]
fn the_summary_counts_outcomes() {
    let tools = Arc::new(sample_tools(Vec::new()));
    let mut summary = RunSummary::new(ticking_clock(), &tools, Arc::default());
    assert_snapshot!(summary.text(), @"no calls");
    emit_turn(&mut summary, &sample_calls(), "done").unwrap();
    emit_retry_and_timeout(&mut summary, &call_with_estimate(3, "wait", 1, false));
    assert_eq!(summary.errors(), 2);
    assert_snapshot!(summary.text(), @"4 calls in 1 batch: 2 ok, 1 failed (timeout), 1 rejected (unknown tool); 1 retried; took 8.5s, 33s if run one after another");
    emit_start(&mut summary, &call_with_estimate(4, "get", 1, true));
    assert!(
        summary
            .text()
            .contains("1 rejected (unknown tool), 1 without a result; 1 retried;")
    );
}

#[test]
fn the_summary_tells_coercion_from_defaults() {
    let adjusted = |position, is_coerced| {
        let mut checked = accepted_call(position, sample_tool("get"), true, "{}");
        if let Verdict::Accepted(accepted) = &mut checked.verdict {
            accepted.before_coercion = Some(accepted.input.clone());
            accepted.is_coerced = is_coerced;
        }
        checked
    };
    let mut summary = RunSummary::new(ticking_clock(), &sample_tools(Vec::new()), Arc::default());
    let calls = [adjusted(0, true), adjusted(1, false), adjusted(2, false)];
    emit_turn(&mut summary, &calls, "done").unwrap();
    let text = summary.text();
    assert!(
        text.contains("; 1 with a coerced input, 2 with defaults added;"),
        "{text}"
    );
}

/// The end of what was cut tells an argument from the error after it.
#[test]
fn a_text_that_is_cut_keeps_its_closing_mark() {
    let cut = |text| truncate_closed(text, 14).into_owned();
    assert_eq!(cut("t (reading docs/gone/a)"), "t (reading d…)");
    assert_eq!(cut(r#"{"path":"docs/gone"}"#), r#"{"path":"do…"}"#);
    assert_eq!(cut(r#"{"n":[1,2,3,4,5,6]}"#), r#"{"n":[1,2,3…}"#);
    assert_eq!(cut(r#"{"a":"b\"cdefghij"}"#), r#"{"a":"b\"cd…"}"#);
    assert_eq!(cut(r#"{"path":"docs"}"#), r#"{"path":"do…"}"#);
    assert_eq!(cut("without a mark"), "without a mark");
}

/// Lines in a pipe aren't limited to the columns of a terminal.
#[test]
fn a_pipe_has_the_whole_input() {
    let path = "directory/".repeat(20);
    let call = accepted_call(
        0,
        sample_tool("wait"),
        false,
        &format!(r#"{{"path":"{path}"}}"#),
    );
    let line = |columns| {
        let output = OutputBuffer::default();
        let mut lines = ProgressLines::new(Box::new(output.clone()), JOBS, mask(), ticking_clock());
        lines.columns = columns;
        emit_retry_and_timeout(&mut lines, &call);
        output.to_text().split_whitespace().collect::<String>()
    };
    assert!(line(None).contains(&format!(r#"{{"path":"{path}"}}:timeout"#)));
    let narrow = line(Some(60));
    assert!(narrow.contains(r#"…"}:timeout"#), "{narrow}");
}
