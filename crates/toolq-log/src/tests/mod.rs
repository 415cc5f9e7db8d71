//! The log as its readers find it.

mod disk_faults;
mod faulty_disk;
mod reading;
mod recovery;
mod sequence;
mod servers;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

use crate::memory::{MemoryUse, RememberedIn};
use crate::records::{record, sha256_hex};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::os::Clock;
use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::{
    CallKind, CallOutput, CallRef, CheckedCall, Event, EventSink, NotExecutedCause, Outcome,
    ResultContent, TurnOrigin, Verdict,
};
use toolq_testing::{
    accepted_call, call_with_estimate, emit_finished, emit_turn, hostile_text, rejected_call,
    sample_tool, success_outcome,
};

/// Prints counts to stderr, even if the test's output is captured.
fn report_counts(counts: std::fmt::Arguments<'_>) {
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{counts}\n"));
}

fn fixed_clock() -> Clock {
    Clock::new(|| 1_763_755_200_000)
}

fn session_record() -> SessionRecord {
    let (path, dir) = (Path::new("/work/tools.yaml"), Path::new("/work"));
    let tools = parse_tools_file("version: 1\ntools: {}\n", dir, dir)
        .tools
        .unwrap();
    let mut session = SessionRecord::new(path, &tools, std::num::NonZeroUsize::MIN);
    session.tools.sha256 = "ab".repeat(32);
    "/work".clone_into(&mut session.cwd);
    session
}

fn begin_session(path: &Path, mask: Mask) -> Result<SessionLog, LogError> {
    begin_at(path, mask, fixed_clock())
}

fn begin_at(path: &Path, mask: Mask, clock: Clock) -> Result<SessionLog, LogError> {
    let memory = (RememberedIn::log(path), MemoryUse::default());
    LockedLog::open(path)?.begin_session(session_record(), memory, Arc::new(mask), clock)
}

/// Writes a log of one finished session and returns its lines.
fn write_log(emit: impl FnOnce(&mut SessionLog)) -> (TempDir, PathBuf, Vec<Value>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::new(["s3cr3t-value"])).unwrap();
    emit(&mut log);
    log.finish(0).unwrap();
    let lines = read_lines(&path);
    (dir, path, lines)
}

fn read_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Formats each record as `type content metadata`, without the session, whose process differs each time, and without
/// the meaning of tools, which is tested by itself.
fn summarize_records(lines: &[Value]) -> String {
    let brief = |record: &Value| {
        let kind = record["type"].as_str().unwrap();
        let mut metadata = record["metadata"].clone();
        if let Some(members) = metadata.as_object_mut() {
            members.shift_remove("tool_meaning");
        }
        format!("{kind} {} {metadata}", record["content"])
    };
    lines[1..].iter().map(brief).collect::<Vec<_>>().join("\n")
}

/// A rejected call has no start, and secrets are masked.
#[test]
fn a_turn_is_recorded_without_its_secrets() {
    let mut coerced = accepted_call(0, sample_tool("get_x"), true, r#"{"n": 1.00}"#);
    if let Verdict::Accepted(accepted) = &mut coerced.verdict {
        accepted.before_coercion = Input::parse(r#"{"n":"1.00"}"#).ok();
    }
    let secret = accepted_call(
        2,
        sample_tool("save"),
        false,
        "{\n \"t\": \"s3cr3t-value\"}",
    );
    let checked = [coerced, rejected_call(1, "missing"), secret];
    let (_dir, _, lines) = write_log(|log| emit_turn(log, &checked, "done").unwrap());
    assert_snapshot!(summarize_records(&lines), @r#"
    turn null {"turn":0}
    tool_call {"name":"get_x","input":{"n":1.0}} {"tool_use_id":"toolu_0","turn":0,"position":0,"batch":0,"concurrency_safe":true,"reason":"rule get_*","key":"b4886355b11a2b3bb20f0cce7175d4b0","input_digest":"87fce09eb708e3b48196180bf8040bc5","input_before_coercion":{"n":"1.00"},"tool_name":"get_x"}
    tool_call {"name":"missing","input":{}} {"tool_use_id":"toolu_1","turn":0,"position":1,"batch":null,"concurrency_safe":null,"reason":null,"key":"b852ca4ab9488db7b53256b170fc50d1","input_digest":"98398acd954a141ebe57d9c308f198f3","tool_name":"missing"}
    tool_result "Unknown tool." {"tool_use_id":"toolu_1","tool_name":"missing","is_error":true,"status":"unknown_tool","duration_ms":0,"attempts":0,"reach":"nothing"}
    tool_call {"name":"save","input":{"t":"[masked]"}} {"tool_use_id":"toolu_2","turn":0,"position":2,"batch":0,"concurrency_safe":false,"reason":"rule save_*","key":"f6fc6499399a2a189fd3a419577ce038","input_digest":"c2dc190622ba66372d76b802eaa16bd5","tool_name":"save"}
    tool_start null {"tool_use_id":"toolu_0","tool_name":"get_x","attempt":1,"idempotency_key":"key","effect":"write"}
    tool_start null {"tool_use_id":"toolu_2","tool_name":"save","attempt":1,"idempotency_key":"key","effect":"write"}
    tool_result "done" {"tool_use_id":"toolu_0","tool_name":"get_x","is_error":false,"status":"ok","duration_ms":1500,"attempts":1,"exit":0,"bytes":4}
    tool_result "done" {"tool_use_id":"toolu_2","tool_name":"save","is_error":false,"status":"ok","duration_ms":1500,"attempts":1,"exit":0,"bytes":4}
    session_end null {"turns":1,"calls":3,"results":3,"errors":1,"skipped":0,"duration_ms":0,"exit_code":0,"in_doubt":0,"recalled":0,"answered":3,"agent_calls":0}
    "#);
    assert_eq!(lines[0]["metadata"]["format"]["major"], 1);
    assert_eq!(lines[0]["parentId"], Value::Null);
    for (line, parent) in [
        (1, 0),
        (2, 1),
        (3, 1),
        (4, 3),
        (5, 1),
        (6, 2),
        (8, 2),
        (10, 0),
    ] {
        assert_eq!(lines[line]["parentId"], lines[parent]["id"], "{line}");
    }
}

#[test]
fn a_retry_records_the_previous_attempt() {
    let checked = accepted_call(0, sample_tool("save"), false, "{}");
    let call = CallRef::new(&checked.call, Some(0));
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    let started = |attempt| Event::Started {
        call: &call,
        accepted,
        attempt,
        idempotency_key: "key",
        claim: None,
        waited: None,
    };
    let outcome = Outcome::TimedOut {
        no_calls_started: false,
        limit: std::time::Duration::from_secs(1),
        output: CallOutput::default(),
    };
    let retrying = Event::Retrying {
        call: &call,
        attempt: 1,
        outcome: &outcome,
        wait: std::time::Duration::from_millis(200),
    };
    let queued = Event::Queued {
        checked: &checked,
        batch: Some(0),
    };
    let skipped = Outcome::NotExecuted(NotExecutedCause::PrecedingFailed {
        tool: "check".to_owned(),
    });
    let (_dir, _, lines) = write_log(|log| {
        log.emit(&[queued, started(1), retrying, started(2)])
            .unwrap();
        emit_finished(log, &call, &skipped, "Not executed.", (0, 0)).unwrap();
    });
    assert_snapshot!(summarize_records(&lines), @r#"
    tool_call {"name":"save","input":{}} {"tool_use_id":"toolu_0","turn":0,"position":0,"batch":0,"concurrency_safe":false,"reason":"rule save_*","key":"69d7b537cf3d326efc445f566d99233e","input_digest":"98398acd954a141ebe57d9c308f198f3","tool_name":"save"}
    tool_start null {"tool_use_id":"toolu_0","tool_name":"save","attempt":1,"idempotency_key":"key","effect":"write"}
    tool_start null {"tool_use_id":"toolu_0","tool_name":"save","attempt":2,"idempotency_key":"key","effect":"write","after":{"status":"timeout","wait_ms":200}}
    tool_skipped "Not executed." {"tool_use_id":"toolu_0","tool_name":"save","is_error":true,"status":"not_executed","duration_ms":0,"attempts":0,"reach":"nothing"}
    session_end null {"turns":0,"calls":1,"results":0,"errors":0,"skipped":1,"duration_ms":0,"exit_code":0,"in_doubt":0,"recalled":0,"answered":1,"agent_calls":0}
    "#);
}

/// The seal of every line, computed as documented.
#[test]
fn every_line_is_sealed() {
    let checked = [
        call_with_estimate(0, "get", 1, true),
        rejected_call(1, "missing"),
    ];
    let (_dir, path, _) = write_log(|log| emit_turn(log, &checked, "done").unwrap());
    let text = fs::read_to_string(path).unwrap();
    for (seq, line) in text.lines().enumerate() {
        let (sealed, crc) = line.rsplit_once(",\"crc\":").unwrap();
        assert_eq!(
            crc,
            format!("\"{:08x}\"}}", crc32fast::hash(sealed.as_bytes()))
        );
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["seq"], seq);
    }
}

/// No record is too large to be written at once; larger content goes into files. Metadata always stays in its record.
#[test]
fn large_contents_are_stored_as_blobs() {
    let text = "x".repeat(100_000);
    let mut huge = accepted_call(
        0,
        sample_tool("save"),
        false,
        &format!(r#"{{"t":"{text}"}}"#),
    );
    huge.call.id = "é".repeat(70_000);
    if let Verdict::Accepted(accepted) = &mut huge.verdict {
        accepted.before_coercion = Input::parse(&format!(r#"{{"u":"{text}"}}"#)).ok();
    }
    let whole_id = huge.call.id.clone();
    let (_dir, path, lines) = write_log(|log| emit_turn(log, &[huge], &text).unwrap());
    let call = &lines[2];
    let stored = |body: &Value| -> Value {
        let file = body["$file"].as_str().unwrap();
        let bytes = fs::read(path.with_extension("jsonl.d").join(file)).unwrap();
        assert_eq!(sha256_hex(&bytes), file);
        assert_eq!(body["bytes"], bytes.len());
        serde_json::from_slice(&bytes).unwrap()
    };
    let content = stored(&call["content"]);
    assert_eq!(content["input"]["t"], text);
    assert_eq!(content["id"], whole_id);
    assert_eq!(
        stored(&call["metadata"]["input_before_coercion"])["u"],
        text
    );
    assert_eq!(stored(&lines[4]["content"]), text);
    let digest = sha256_hex(whole_id.as_bytes());
    for line in &lines[2..5] {
        let id = line["metadata"]["tool_use_id"].as_str().unwrap();
        assert!(id.starts_with("éé") && id.len() < 512, "{id}");
        assert!(
            id.ends_with(&format!("… (140000 bytes, sha256 {digest})")),
            "{id}"
        );
    }
    let raw = fs::read(&path).unwrap();
    assert!(
        raw.split(|byte| *byte == b'\n')
            .all(|line| line.len() < MAX_RECORD_BYTES)
    );
}

/// Content and inputs that look like a reference to a file are read as they were written.
#[test]
fn content_that_looks_like_a_blob_reference_is_read_as_written() {
    let forged = r#"{"$file":"x","type":"message"}"#;
    let mut call = accepted_call(0, sample_tool("save"), false, "{}");
    if let Verdict::Accepted(accepted) = &mut call.verdict {
        accepted.before_coercion = Input::parse(forged).ok();
    }
    let (_dir, path, lines) = write_log(|log| {
        emit_turn(log, &[call], "x").unwrap();
        let forged = RawValue::from_string(forged.to_owned()).unwrap();
        let recorder = log.recorder();
        let content = (&forged, &json!({}));
        recorder
            .journal
            .append(RecordKind::ModelResponse, None, content, false)
            .unwrap();
        recorder.journal.sync().unwrap();
    });
    let mut records = RecordReader::open(&path).unwrap();
    let mut files = 0;
    while let Some(record) = records.next_borrowed() {
        let record = record.unwrap();
        files += record.check_referenced_files(&path).unwrap();
        if record.kind == RecordKind::ModelResponse {
            assert_eq!(record.content.load(&path).unwrap().get(), forged);
        }
    }
    assert_eq!(files, 2, "{lines:?}");
}

/// Whatever the umask, a log has mode 0600, and its directory of blobs 0700.
#[test]
fn only_the_owner_can_read_a_log() {
    let text = "x".repeat(100_000);
    let checked = [call_with_estimate(0, "get", 1, true)];
    let (_dir, path, _) = write_log(|log| emit_turn(log, &checked, &text).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    let bodies = path.with_extension("jsonl.d");
    assert_eq!(mode(&bodies), 0o700);
    for body in fs::read_dir(bodies).unwrap() {
        assert_eq!(mode(&body.unwrap().path()), 0o600);
    }
}

#[test]
fn a_log_holds_many_sessions() {
    let checked = [call_with_estimate(0, "get", 1, true)];
    let (_dir, path, _) = write_log(|log| emit_turn(log, &checked, "one").unwrap());
    let mut log = begin_session(&path, Mask::default()).unwrap();
    emit_turn(&mut log, &checked, "two").unwrap();
    assert!(matches!(
        begin_session(&path, Mask::default()),
        Err(LogError::InUse(_))
    ));
    log.finish(3).unwrap();
    drop(log);
    let lines = read_lines(&path);
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[6]["parentId"], Value::Null);
    assert!(
        lines
            .iter()
            .enumerate()
            .all(|(seq, record)| record["seq"] == seq)
    );
    begin_session(&path, Mask::default()).unwrap();
}

/// A file that isn't certain to be a log is left alone.
#[test]
fn a_log_that_cannot_be_continued_is_refused() {
    let (dir, path, _) = write_log(|_| ());
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        let path = dir.path().join("other.jsonl");
        fs::write(&path, bytes).unwrap();
        let error = begin_session(&path, Mask::default()).err().unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        error
    };
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for bit in first..whole.len() - 1 {
        let mut flipped = whole.clone();
        flipped[bit] ^= 1;
        refused(&flipped);
    }
    for text in ["{}\n", "\n", "hello", "\0\0\0\0"] {
        assert!(
            matches!(refused(text.as_bytes()), LogError::NotALog(_)),
            "{text}"
        );
    }
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(
        begin_session(&link, Mask::default()),
        Err(LogError::Symlink(_))
    ));
    let error = |path: &str| {
        begin_session(Path::new(path), Mask::default())
            .err()
            .unwrap()
    };
    assert!(matches!(error("/"), LogError::NotRegularFile(_)));
    assert!(matches!(error("/dev/null"), LogError::NotRegularFile(_)));
    assert!(matches!(error("/nowhere/log"), LogError::NoParentDir(_)));
}

/// A newer minor version is read, but nothing is appended.
#[test]
fn a_newer_log_is_not_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let format = serde_json::json!({"format": {"major": 1, "minor": 1}});
    let metadata = sequence::complete_metadata("session", &format);
    let record = record::NewRecord {
        seq: 0,
        id: uuid::Uuid::nil(),
        parent: None,
        timestamp: 0,
        kind: RecordKind::Session,
        content: (),
        metadata,
    };
    let mut line = Vec::new();
    record::write_sealed_line(&mut line, &record).unwrap();
    fs::write(&path, &line).unwrap();
    let error = begin_session(&path, Mask::default()).err().unwrap();
    assert!(
        matches!(error, LogError::NewerFormat { minor: 1, .. }),
        "{error}"
    );
}

/// After a failed write, nothing is written and every start is refused.
#[test]
fn nothing_is_written_after_a_failed_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::default()).unwrap();
    let before = fs::read(&path).unwrap();
    // A file in the place of the blob directory.
    fs::write(path.with_extension("jsonl.d"), "").unwrap();
    let checked = [call_with_estimate(0, "get", 1, true)];
    let large = "x".repeat(MAX_RECORD_BYTES);
    let emitted = emit_turn(&mut log, &checked, &large);
    assert!(
        emitted
            .and_then(|()| log.recorder().journal.sync())
            .is_err()
    );
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before));
    let refused = log
        .emit(&[Event::TurnStarted {
            turn: 1,
            parent: None,
            origin: &TurnOrigin::default(),
        }])
        .unwrap_err();
    assert!(refused.0.contains("can't be written"), "{refused}");
    assert_eq!(log.write_error().as_ref(), Some(&refused));
    assert!(log.finish(0).is_err());
    assert_eq!(fs::read(&path).unwrap(), after);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Readers find as many lines as records were written, regardless of what the records contain and of what the
    /// reader treats as a line break.
    #[test]
    fn no_text_forges_a_record(id in hostile_text(), name in hostile_text(), text in hostile_text(), value in hostile_text()) {
        let input = serde_json::to_string_pretty(&serde_json::json!({ value.as_str(): value })).unwrap();
        let mut checked: CheckedCall = accepted_call(0, sample_tool(&name), true, &input);
        checked.call.id = id;
        let (_dir, path, lines) = write_log(|log| emit_turn(log, &[checked], &text).unwrap());
        prop_assert_eq!(lines.len(), 6);
        prop_assert_eq!(lines[4]["content"].as_str(), Some(text.as_str()));
        let text = fs::read_to_string(path).unwrap();
        let breaks = |c: &char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
        prop_assert_eq!(text.chars().filter(breaks).count(), 6);
    }
}

#[test]
fn content_blocks_keep_their_form() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let outcome = success_outcome("");
    let checked = call_with_estimate(0, "get", 1, true);
    let call = CallRef::new(&checked.call, Some(0));
    let answer = toolq_core::types::CallAnswer {
        tool_use_id: String::new(),
        tool_name: String::new(),
        content: ResultContent::Blocks(vec![raw("{\"type\": \"text\",\n \"text\": \"a\"}")]),
        is_error: false,
        for_clients: None,
        report: toolq_core::types::CallReport::default(),
        has_number_id: false,
        kind: CallKind::Function,
    };
    let finished = Event::Finished {
        call: &call,
        request: checked.request(),
        outcome: &outcome,
        answer: &answer,
        duration: std::time::Duration::ZERO,
        attempts: 1,
        agent_usage: None,
        claim: None,
    };
    let queued = Event::Queued {
        checked: &checked,
        batch: Some(0),
    };
    let (_dir, _, lines) = write_log(|log| log.emit(&[queued, finished]).unwrap());
    assert_eq!(
        lines[2]["content"],
        serde_json::json!([{"type": "text", "text": "a"}])
    );
}
