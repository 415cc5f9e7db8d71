//! The same turn, as each reader shows it.

mod bars;
mod terminal;

use crate::events::{EventStream, Fanout};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::testing::{accepted, finish, hostile, play, rejected, timed, tool};
use toolq_core::types::{
    CallRef, Captured, Checked, Ending, Event, Outcome, Part, Prices, Sink, Status, Template, Tool,
    Verdict,
};

const JOBS: NonZeroUsize = NonZeroUsize::new(10).unwrap();

/// A file that the test reads.
#[derive(Clone, Debug, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Half a second passes each time that somebody looks.
fn clock() -> Clock {
    let ms = AtomicU64::new(0);
    Clock::new(move || ms.fetch_add(500, Ordering::Relaxed))
}

fn mask() -> Arc<Mask> {
    Arc::new(Mask::new(["s3cr3t-value"]))
}

/// A call with words of its own and a secret, one that is rejected, and one without words.
fn checked() -> [Checked; 3] {
    let path = Part::Value {
        path: vec!["path".to_owned()],
        optional: false,
        splat: false,
    };
    let doing = Template {
        parts: vec![Part::Text("reading ".to_owned()), path],
    };
    let read = Tool {
        display_name: Some("Read".to_owned()),
        status: Status {
            wait: None,
            doing: Some(doing),
        },
        ..tool("read_file")
    };
    let input = r#"{"path": "s3cr3t-value\u001b[2J", "n": 1.00}"#;
    [
        accepted(0, read, true, input),
        rejected(1, "no\x1b[31mbody"),
        timed(2, "get", 1, true),
    ]
}

/// Tells that a call waits, and that it runs.
fn start(sink: &mut dyn Sink, checked: &Checked) {
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
    };
    sink.tell(&[queued, started]).unwrap();
}

/// An attempt that failed, the words of the tool, and a timeout.
fn trouble(sink: &mut dyn Sink, checked: &Checked) {
    let call = &CallRef::new(&checked.call, Some(0));
    let failed = Outcome::Failed {
        output: String::new(),
        stderr: String::new(),
        captured: Captured::default(),
        ending: Ending::Http(503),
    };
    let timed_out = Outcome::TimedOut {
        idle: false,
        limit: Duration::from_secs(30),
        output: String::new(),
        stderr: String::new(),
        captured: Captured::default(),
    };
    let retrying = Event::Retrying {
        call,
        attempt: 1,
        outcome: &failed,
        wait: Duration::from_millis(1_200),
    };
    let status = Event::Status {
        call,
        tip: Some("half\x1b[1m way"),
        progress: Some(0.5),
    };
    start(sink, checked);
    sink.tell(&[retrying, status.clone(), status]).unwrap();
    finish(sink, call, &timed_out, "Timed out.", (30_000, 2)).unwrap();
    sink.tell(&[Event::ResultWritten { call }]).unwrap();
}

/// FAULTS 10, 131: digits as they came, secrets not at all.
#[test]
fn events_for_programs() {
    let paper = Paper::default();
    let reader = Box::new(paper.clone());
    let mut stream = EventStream::new(reader, mask(), Clock::new(|| 7)).unwrap();
    play(&mut stream, &checked(), "done\u{2028}").unwrap();
    trouble(&mut stream, &timed(3, "wait", 1, false));
    assert_eq!(stream.finish(), None);
    let text = paper.text();
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["timestamp"], 7);
    }
    assert_snapshot!(text.replace("\"timestamp\":7,\"turn\":0,", ""), @r#"
    {"type":"tool_queued","tool_use_id":"toolu_0","tool_name":"read_file","position":0,"state":{"state":"wait","params":{"path": "[masked]\u001b[2J", "n": 1.00}}}
    {"type":"tool_queued","tool_use_id":"toolu_1","tool_name":"no\u001b[31mbody","position":1,"state":{"state":"wait","params":{}}}
    {"type":"tool_error","tool_use_id":"toolu_1","tool_name":"no\u001b[31mbody","status":"unknown_tool","error":"Unknown tool.","state":{"state":"error","params":{},"result":"Unknown tool."}}
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
    {"type":"tool_error","tool_use_id":"toolu_3","tool_name":"wait","status":"timeout","error":"Timed out.","state":{"state":"error","tip":"half\u001b[1m way","progress":0.5,"params":{},"result":"Timed out."}}
    {"type":"result_written","tool_use_id":"toolu_3","tool_name":"wait","state":{"state":"error","tip":"half\u001b[1m way","progress":0.5,"params":{},"result":"Timed out."}}
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// FAULTS 78, 122: no text adds an event or a line, and none reaches a terminal as a command.
    #[test]
    fn no_text_forges_an_event(id in hostile(), name in hostile(), text in hostile()) {
        let mut call = accepted(0, tool(&name), true, "{}");
        call.call.id = id;
        let (events, build) = (Paper::default(), Paper::default());
        let mut stream = EventStream::new(Box::new(events.clone()), mask(), clock()).unwrap();
        let mut lines = Lines::new(Box::new(build.clone()), JOBS, mask(), clock());
        play(&mut Fanout::new(None, vec![&mut stream, &mut lines]), &[call], &text).unwrap();
        prop_assert_eq!(stream.finish(), None);
        prop_assert_eq!(events.text().lines().count(), 6);
        prop_assert_eq!(build.text().lines().count(), 1);
        prop_assert!(!build.text().trim_end_matches('\n').contains(char::is_control));
    }
}

/// FAULTS 78.
#[test]
fn lines_for_a_build() {
    let paper = Paper::default();
    let mut lines = Lines::new(Box::new(paper.clone()), JOBS, mask(), clock());
    play(&mut lines, &checked(), "done").unwrap();
    trouble(&mut lines, &timed(3, "wait", 1, false));
    assert_snapshot!(paper.text(), @r"
    #1 no\x1b[31mbody: unknown tool
    2 calls in parallel
    #0 Read: ok, 1.5s (reading [masked]\x1b[2J)
    #2 get: ok, 1.5s
    #3 wait: HTTP 503, attempt 2 in 1.2s
    #3 wait: half\x1b[1m way
    #3 wait: timeout after 30s
    ");
}

#[test]
fn a_summary() {
    let mut summary = Summary::new(clock(), Prices::default());
    assert_snapshot!(summary.text(), @"no calls");
    play(&mut summary, &checked(), "done").unwrap();
    trouble(&mut summary, &timed(3, "wait", 1, false));
    assert_eq!(summary.errors(), 2);
    assert_snapshot!(summary.text(), @"4 calls in 1 batch: 2 ok, 1 timeout, 1 unknown tool; 33s in series, 8.5s as run");
    start(&mut summary, &timed(4, "get", 1, true));
    assert!(
        summary
            .text()
            .contains("1 unknown tool, 1 without a result;")
    );
}
