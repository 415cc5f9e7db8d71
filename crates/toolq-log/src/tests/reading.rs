//! A log is read as it was written, or not at all.

use crate::read::Flaw;
use crate::records::line;
use crate::records::metadata;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use super::*;

/// A log with all that a run writes: two sessions, a rejected call, a body that stands in a file.
pub(crate) fn sample(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("log.jsonl");
    for text in ["one", "two\u{2028}\n"] {
        let mut log = begin(&path, Mask::default()).unwrap();
        let checked = [timed(0, "get", 1, true), rejected(1, "nobody")];
        play(&mut log, &checked, text).unwrap();
        log.finish(0).unwrap();
    }
    path
}

pub(crate) fn read(path: &Path) -> Result<Vec<Record<'static>>, Damage> {
    Records::open(path).unwrap().collect()
}

fn read_bytes(bytes: &[u8]) -> Result<Vec<Record<'static>>, Damage> {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    Records::of(file).collect()
}

pub(crate) fn breaks(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(&folder);
    let records = read(&path).unwrap();
    let values = lines(&path);
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
        assert_eq!(json(record.metadata.get()), value["metadata"]);
        offset += fs::read(&path).unwrap()[usize::try_from(offset).unwrap()..]
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap() as u64
            + 1;
    }
}

/// Each type's metadata has the form that readers are promised.
#[test]
fn metadata_has_the_form_of_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let mut ends = 0;
    for record in read(&sample(&folder)).unwrap() {
        match record.kind {
            Kind::Session => {
                let session: SessionStart = record.metadata().unwrap();
                assert_eq!((session.format.major, session.jobs), (1, 1));
            }
            Kind::Turn => assert_eq!(record.metadata::<TurnFields>().unwrap().turn, 0),
            Kind::ToolCall => {
                let call: metadata::Call = record.metadata().unwrap();
                assert_eq!(call.tool_use_id, format!("toolu_{}", call.position));
                let content = record.content.load(Path::new("")).unwrap();
                let content: metadata::LoggedCallContent =
                    serde_json::from_str(content.get()).unwrap();
                assert_eq!(content.input.unwrap().get(), "{}");
            }
            Kind::ToolStart => {
                let start: Start<'_> = record.metadata().unwrap();
                assert_eq!((start.attempt, &*start.effect), (1, "write"));
            }
            Kind::ToolResult => {
                let end: metadata::CallEnd<'_> = record.metadata().unwrap();
                assert_eq!(end.is_error, end.status != "ok");
                ends += 1;
            }
            Kind::SessionEnd => {
                let end: EndFields = record.metadata().unwrap();
                assert_eq!((end.calls, end.results, end.errors), (2, 2, 1));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(ends, 4);
}

/// FAULTS 114: every bit of a log counts.
#[test]
fn no_bit_may_flip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut log = begin(&path, Mask::default()).unwrap();
    play(&mut log, &[timed(0, "get", 1, true)], "é").unwrap();
    log.finish(0).unwrap();
    let whole = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let at = (bit / 8) as u64;
        file.write_all_at(&[whole[bit / 8] ^ 1 << (bit % 8)], at)
            .unwrap();
        let line = breaks(&whole[..bit / 8]) as u64 + 1;
        let damage = read(&path).unwrap_err();
        assert_eq!(damage.line, line, "bit {bit}: {damage}");
        assert!(!damage.is_torn(), "bit {bit}: {damage}");
        file.write_all_at(&whole[bit / 8..=bit / 8], at).unwrap();
    }
    say(format_args!(
        "{} flipped bits, each found in its line",
        whole.len() * 8
    ));
}

/// FAULTS 109: wherever the end is cut off, what stands before is read, and the end is told apart from other damage.
#[test]
fn a_cut_is_a_torn_end() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(sample(&folder)).unwrap();
    for cut in 0..=whole.len() {
        let lines = breaks(&whole[..cut]);
        let ends = cut == 0 || whole[cut - 1] == b'\n';
        match read_bytes(&whole[..cut]) {
            Ok(records) => assert!(ends && records.len() == lines, "{cut}"),
            Err(damage) => {
                assert!(!ends && damage.is_torn(), "{cut}: {damage}");
                assert_eq!(damage.line, lines as u64 + 1);
            }
        }
    }
    say(format_args!("cut at {} places", whole.len() + 1));
}

/// FAULTS 114: lines that are gone, twice there, swapped or empty, and runs of NUL, are found where they stand.
#[test]
fn lines_stand_where_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(sample(&folder)).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let damaged = |lines: &[&[u8]]| read_bytes(&lines.concat()).unwrap_err();
    for at in 0..lines.len() - 1 {
        let mut gone = lines.clone();
        gone.remove(at);
        assert_eq!(damaged(&gone).line, at as u64 + 1);
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        assert_eq!(damaged(&swapped).line, at as u64 + 1);
    }
    for at in 0..lines.len() {
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert_eq!(damaged(&twice).line, at as u64 + 2);
        let mut empty = lines.clone();
        empty.insert(at, b"\n");
        assert_eq!(damaged(&empty).line, at as u64 + 1);
        let mut nul = lines.clone();
        let zeros = vec![0; lines[at].len() - 1];
        nul[at] = &zeros;
        let last = at + 1 == lines.len();
        let damage = damaged(&nul);
        assert_eq!(
            (damage.line, damage.is_torn()),
            (at as u64 + 1, last && at > 0)
        );
    }
}

/// FAULTS 120.
#[test]
fn what_must_be_understood_is() {
    let record = |kind: Kind, seq, metadata: Value, chain: &line::Chain| {
        let head = line::Head {
            seq,
            id: uuid::Uuid::nil(),
            parent: None,
            timestamp: 0,
            kind: &kind,
            prev: &chain.prev,
        };
        let mut line = Vec::new();
        line::seal(&mut line, &head, &(), &metadata).unwrap();
        line
    };
    let second = |kind: &str, second: Value, minor: u32| {
        let format = serde_json::json!({"format": {"major": 1, "minor": minor}});
        let mut chain = line::Chain::start();
        let mut log = record(Kind::Session, 0, format, &chain);
        chain.push(log.trim_ascii_end());
        log.extend(record(Kind::of(kind), 1, second, &chain));
        log
    };
    assert_eq!(
        read_bytes(&second("new", serde_json::json!({}), 0))
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        read_bytes(&second("new", serde_json::json!({}), 7))
            .unwrap()
            .len(),
        2
    );
    let must = serde_json::json!({"must_understand": true});
    let damage = read_bytes(&second("new", must, 0)).unwrap_err();
    assert_eq!(
        (damage.line, damage.what),
        (2, Flaw::MustUnderstand("new".to_owned()))
    );
    let newer = serde_json::json!({"format": {"major": 2, "minor": 0}});
    let damage = read_bytes(&second("session", newer, 0)).unwrap_err();
    assert_eq!(damage.what, Flaw::Newer { major: 2, minor: 0 });
}

/// FAULTS 130: what counts is the order in the file, whatever the clock says.
#[test]
fn clocks_may_go_backwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let now = std::sync::atomic::AtomicU64::new(1_763_755_200_000);
    let back = Clock::new(move || now.fetch_sub(1_000, std::sync::atomic::Ordering::SeqCst));
    let mut log = SessionLog::create(&path, &session(), Arc::new(Mask::default()), back).unwrap();
    play(&mut log, &[timed(0, "get", 1, true)], "done").unwrap();
    log.finish(0).unwrap();
    let records = read(&path).unwrap();
    assert!(records.is_sorted_by(|one, next| one.timestamp > next.timestamp && one.seq < next.seq));
    let end: EndFields = records.last().unwrap().metadata().unwrap();
    assert_eq!(end.duration_ms, 0);
}

/// A reader that reached the end of a log that is being written finds what comes later.
#[test]
fn a_log_may_grow_while_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(sample(&folder)).unwrap();
    let path = folder.path().join("growing");
    fs::write(&path, "").unwrap();
    let mut records = Records::open(&path).unwrap();
    let mut seen = 0;
    for end in (0..=whole.len()).step_by(100).chain([whole.len()]) {
        fs::write(&path, &whole[..end]).unwrap();
        records.again();
        seen += records.by_ref().flatten().count();
        let lines = breaks(&whole[..end]);
        assert_eq!(seen, lines);
    }
}

/// FAULTS 132: a body is what the record says, or none.
#[test]
fn a_body_is_what_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut log = begin(&path, Mask::default()).unwrap();
    let text = "x".repeat(MAX_RECORD);
    play(&mut log, &[timed(0, "get", 1, true)], &text).unwrap();
    let records = read(&path).unwrap();
    let body = &records
        .iter()
        .find(|record| record.kind.ends_call())
        .unwrap()
        .content;
    let Body::Stored(stored) = body else {
        panic!("{body:?}")
    };
    let json = serde_json::to_string(&text).unwrap();
    assert_eq!(body.load(&path).unwrap().get(), json);
    let file = log.folder().join(&stored.file);
    let refused = |why: &str| {
        let error = body.load(&path).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    };
    fs::write(&file, &json[1..]).unwrap();
    refused("were written");
    fs::write(&file, json.replace('x', "y")).unwrap();
    refused("has other bytes than were written");
    fs::remove_file(&file).unwrap();
    refused("(os error 2)");
    fs::write(folder.path().join("elsewhere"), &json).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &file).unwrap();
    refused("(os error 40)");
    let forged = |file: &str| {
        let raw = serde_json::json!({"$file": file, "bytes": 1}).to_string();
        let raw = RawValue::from_string(raw).unwrap();
        Body::of(&raw).map(Body::into_owned)
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

/// FAULTS 127: how long 100,000 records take; a release build must take less than half a second.
#[test]
#[ignore = "a measurement"]
fn hundred_thousand_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut log = begin(&path, Mask::default()).unwrap();
    for _ in 0..33_333 {
        play(&mut log, &[timed(0, "get", 1, true)], &"x".repeat(100)).unwrap();
    }
    let bytes = fs::metadata(&path).unwrap().len();
    let begun = Instant::now();
    let records = Records::open(&path).unwrap();
    let count = records.map(Result::unwrap).count();
    let took = begun.elapsed();
    say(format_args!("{count} records of {bytes} bytes in {took:?}"));
}
