//! A log is read exactly as it was written, or not at all.

use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use super::*;
use crate::error::CorruptionKind;
use crate::records::{
    CallContent, CallEndRecord, CallRecord, SessionEndRecord, SessionRecord, StartRecord,
    TurnRecord, record,
};

/// Writes a log of two sessions, each with a call that ran and a rejected one.
pub(crate) fn write_sample_log(dir: &TempDir) -> PathBuf {
    let path = dir.path().join("log.jsonl");
    for text in ["one", "two\u{2028}\n"] {
        let mut log = begin_session(&path, Mask::default()).unwrap();
        let checked = [
            call_with_estimate(0, "get", 1, true),
            rejected_call(1, "missing"),
        ];
        emit_turn(&mut log, &checked, text).unwrap();
        log.finish(0).unwrap();
    }
    path
}

pub(crate) fn read_records(path: &Path) -> Result<Vec<Record<'static>>, Corruption> {
    RecordReader::open(path).unwrap().collect()
}

fn read_records_from_bytes(bytes: &[u8]) -> Result<Vec<Record<'static>>, Corruption> {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    RecordReader::from_file(file).collect()
}

pub(crate) fn count_line_breaks(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

#[test]
fn records_are_read_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_sample_log(&dir);
    let records = read_records(&path).unwrap();
    let values = read_lines(&path);
    assert_eq!(records.len(), values.len());
    let mut offset = 0;
    for ((at, record), value) in records.iter().enumerate().zip(&values) {
        assert_eq!((record.line, record.seq), (at as u64 + 1, at as u64));
        assert_eq!(record.offset, offset);
        assert_eq!(record.id.to_string(), value["id"]);
        let parent = record.parent.map(|parent| parent.to_string());
        assert_eq!(parent.as_deref(), value["parentId"].as_str());
        assert_eq!(record.kind.name(), value["type"]);
        let content = record.content.load(&path).unwrap();
        let json = |raw: &str| serde_json::from_str::<Value>(raw).unwrap();
        assert_eq!(json(content.get()), value["content"]);
        assert_eq!(json(record.raw_metadata.get()), value["metadata"]);
        offset += fs::read(&path).unwrap()[usize::try_from(offset).unwrap()..]
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap() as u64
            + 1;
    }
}

/// The metadata of each type has the form that readers expect.
#[test]
fn metadata_fits_its_type() {
    let dir = tempfile::tempdir().unwrap();
    let mut ends = 0;
    for record in read_records(&write_sample_log(&dir)).unwrap() {
        match record.kind {
            RecordKind::Session => {
                let session: SessionRecord = record.parse_metadata().unwrap();
                assert_eq!((session.format.major, session.jobs), (1, 1));
            }
            RecordKind::Turn => {
                assert_eq!(record.parse_metadata::<TurnRecord>().unwrap().turn, 0);
            }
            RecordKind::ToolCall => {
                let call: CallRecord<'_> = record.parse_metadata().unwrap();
                assert_eq!(call.tool_use_id, format!("toolu_{}", call.position));
                let content = record.content.load(Path::new("")).unwrap();
                let content: CallContent<'_> = serde_json::from_str(content.get()).unwrap();
                assert_eq!(content.input.unwrap().get(), "{}");
            }
            RecordKind::ToolStart => {
                let start: StartRecord<'_> = record.parse_metadata().unwrap();
                assert_eq!((start.attempt, start.effect.name()), (1, "write"));
            }
            RecordKind::ToolResult => {
                let end: CallEndRecord<'_> = record.parse_metadata().unwrap();
                assert_eq!(end.is_error, end.status != "ok");
                ends += 1;
            }
            RecordKind::SessionEnd => {
                let end: SessionEndRecord = record.parse_metadata().unwrap();
                assert_eq!((end.calls, end.results, end.errors), (2, 2, 1));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(ends, 4);
}

/// No bit of a log can change unnoticed.
#[test]
fn every_flipped_bit_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::default()).unwrap();
    emit_turn(&mut log, &[call_with_estimate(0, "get", 1, true)], "é").unwrap();
    log.finish(0).unwrap();
    let whole = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let at = (bit / 8) as u64;
        file.write_all_at(&[whole[bit / 8] ^ 1 << (bit % 8)], at)
            .unwrap();
        let line = count_line_breaks(&whole[..bit / 8]) as u64 + 1;
        let corruption = read_records(&path).unwrap_err();
        assert_eq!(corruption.line, line, "bit {bit}: {corruption}");
        assert!(!corruption.is_torn_end(), "bit {bit}: {corruption}");
        file.write_all_at(&whole[bit / 8..=bit / 8], at).unwrap();
    }
    report_counts(format_args!(
        "{} flipped bits, each found in its line",
        whole.len() * 8
    ));
}

/// Wherever a log is cut off, the records before the cut are read, and the torn end is distinguished from other damage.
#[test]
fn a_log_that_was_cut_off_has_a_torn_end() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(write_sample_log(&dir)).unwrap();
    for cut in 0..=whole.len() {
        let lines = count_line_breaks(&whole[..cut]);
        let ends = cut == 0 || whole[cut - 1] == b'\n';
        match read_records_from_bytes(&whole[..cut]) {
            Ok(records) => assert!(ends && records.len() == lines, "{cut}"),
            Err(corruption) => {
                assert!(!ends && corruption.is_torn_end(), "{cut}: {corruption}");
                assert_eq!(corruption.line, lines as u64 + 1);
            }
        }
    }
    report_counts(format_args!("cut at {} places", whole.len() + 1));
}

/// Missing, duplicated, swapped and empty lines and runs of NUL are reported with their line.
#[test]
fn every_moved_or_missing_line_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(write_sample_log(&dir)).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let corruption_in = |lines: &[&[u8]]| read_records_from_bytes(&lines.concat()).unwrap_err();
    for at in 0..lines.len() - 1 {
        let mut gone = lines.clone();
        gone.remove(at);
        assert_eq!(corruption_in(&gone).line, at as u64 + 1);
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        assert_eq!(corruption_in(&swapped).line, at as u64 + 1);
    }
    for at in 0..lines.len() {
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert_eq!(corruption_in(&twice).line, at as u64 + 2);
        let mut empty = lines.clone();
        empty.insert(at, b"\n");
        assert_eq!(corruption_in(&empty).line, at as u64 + 1);
        let mut nul = lines.clone();
        let zeros = vec![0; lines[at].len() - 1];
        nul[at] = &zeros;
        let last = at + 1 == lines.len();
        let corruption = corruption_in(&nul);
        assert_eq!(
            (corruption.line, corruption.is_torn_end()),
            (at as u64 + 1, last && at > 0)
        );
    }
}

/// A newer toolq may have written what an older one must not ignore.
#[test]
fn an_unknown_record_that_must_be_understood_is_refused() {
    let record = |kind: RecordKind, seq, metadata: Value| {
        let record = record::NewRecord {
            seq,
            id: uuid::Uuid::nil(),
            parent: None,
            timestamp: 0,
            kind,
            content: (),
            metadata,
        };
        let mut line = Vec::new();
        record::write_sealed_line(&mut line, &record).unwrap();
        line
    };
    let two_records = |kind: &str, second: Value, minor: u32| {
        let format = serde_json::json!({"format": {"major": 1, "minor": minor}});
        let mut log = record(RecordKind::Session, 0, format);
        log.extend(record(RecordKind::from(kind), 1, second));
        log
    };
    assert_eq!(
        read_records_from_bytes(&two_records("new", serde_json::json!({}), 0))
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        read_records_from_bytes(&two_records("new", serde_json::json!({}), 7))
            .unwrap()
            .len(),
        2
    );
    let must = serde_json::json!({"must_understand": true});
    let corruption = read_records_from_bytes(&two_records("new", must, 0)).unwrap_err();
    assert_eq!(
        (corruption.line, corruption.kind),
        (2, CorruptionKind::MustUnderstand("new".to_owned()))
    );
    let newer = serde_json::json!({"format": {"major": 2, "minor": 0}});
    let corruption = read_records_from_bytes(&two_records("session", newer, 0)).unwrap_err();
    assert_eq!(
        corruption.kind,
        CorruptionKind::NewerFormat { major: 2, minor: 0 }
    );
}

/// Only the order in the file counts, whatever the clock says.
#[test]
fn clocks_may_go_backwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let now = std::sync::atomic::AtomicU64::new(1_763_755_200_000);
    let back = Clock::new(move || now.fetch_sub(1_000, std::sync::atomic::Ordering::SeqCst));
    let mut log = begin_at(&path, Mask::default(), back).unwrap();
    emit_turn(&mut log, &[call_with_estimate(0, "get", 1, true)], "done").unwrap();
    log.finish(0).unwrap();
    let records = read_records(&path).unwrap();
    assert!(records.is_sorted_by(|one, next| one.timestamp > next.timestamp && one.seq < next.seq));
    let end: SessionEndRecord = records.last().unwrap().parse_metadata().unwrap();
    assert_eq!(end.duration_ms, 0);
}

/// A reader that reached the end of a growing log can continue.
#[test]
fn a_log_may_grow_while_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(write_sample_log(&dir)).unwrap();
    let path = dir.path().join("growing");
    fs::write(&path, "").unwrap();
    let mut records = RecordReader::open(&path).unwrap();
    let mut seen = 0;
    for end in (0..=whole.len()).step_by(100).chain([whole.len()]) {
        fs::write(&path, &whole[..end]).unwrap();
        records.continue_reading();
        seen += records.by_ref().flatten().count();
        let lines = count_line_breaks(&whole[..end]);
        assert_eq!(seen, lines);
    }
}

/// Nothing has happened to a call that is only queued. Its record is in the file once the engine waits, or something starts.
#[test]
fn a_queued_call_is_written_with_what_follows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::default()).unwrap();
    let kinds = || -> Vec<String> {
        let kind = |line: Value| line["type"].as_str().unwrap().to_owned();
        read_lines(&path).into_iter().map(kind).collect()
    };
    let checked = call_with_estimate(0, "get", 1, true);
    let queued = Event::Queued {
        checked: &checked,
        batch: Some(0),
    };
    log.emit_later(&queued).unwrap();
    assert_eq!(kinds(), ["session"]);
    log.emit(&[]).unwrap();
    assert_eq!(kinds(), ["session", "tool_call"]);
    log.emit_later(&queued).unwrap();
    log.wait_until_durable()();
    assert_eq!(kinds(), ["session", "tool_call", "tool_call"]);
}

/// A file that was changed or replaced isn't read.
#[test]
fn a_blob_that_was_changed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::default()).unwrap();
    let text = "x".repeat(MAX_RECORD_BYTES);
    emit_turn(&mut log, &[call_with_estimate(0, "get", 1, true)], &text).unwrap();
    log.recorder().journal.sync().unwrap();
    let records = read_records(&path).unwrap();
    let content = &records
        .iter()
        .find(|record| record.kind.ends_call())
        .unwrap()
        .content;
    let RecordContent::Stored(stored) = content else {
        panic!("{content:?}")
    };
    let json = serde_json::to_string(&text).unwrap();
    assert_eq!(content.load(&path).unwrap().get(), json);
    let file = log.blob_dir().join(&stored.file);
    let refused = |why: &str| {
        let error = content.load(&path).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    };
    fs::write(&file, &json[1..]).unwrap();
    refused("were written");
    fs::write(&file, json.replace('x', "y")).unwrap();
    refused("doesn't match its SHA-256");
    fs::remove_file(&file).unwrap();
    refused("(os error 2)");
    fs::write(dir.path().join("elsewhere"), &json).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &file).unwrap();
    refused("(os error 40)");
    let forged = |file: &str| {
        let raw = serde_json::json!({"$file": file, "bytes": 1}).to_string();
        serde_json::from_str::<RecordContent<'_>>(&raw).map(RecordContent::into_owned)
    };
    assert!(forged(&stored.file).is_ok());
    for name in [
        "",
        "..",
        "/etc/passwd",
        "../x",
        &stored.file[1..],
        &stored.file.to_uppercase(),
    ] {
        forged(name).unwrap_err();
    }
}

/// Measures how long reading 100,000 records takes. A release build must take less than half a second.
#[test]
#[ignore = "a measurement"]
fn a_hundred_thousand_records_are_read_quickly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::default()).unwrap();
    for _ in 0..33_333 {
        emit_turn(
            &mut log,
            &[call_with_estimate(0, "get", 1, true)],
            &"x".repeat(100),
        )
        .unwrap();
    }
    let bytes = fs::metadata(&path).unwrap().len();
    let started = Instant::now();
    let records = RecordReader::open(&path).unwrap();
    let count = records.map(Result::unwrap).count();
    let elapsed = started.elapsed();
    report_counts(format_args!(
        "{count} records of {bytes} bytes in {elapsed:?}"
    ));
}
