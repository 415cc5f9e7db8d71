//! A log with a torn end continues after its last whole record, and nothing is lost.

use crate::locked_log::LockedLog;
use crate::records::{RecoveredRecord, sha256_hex};
use crate::tests::reading::{count_line_breaks, read_records, write_sample_log};

use super::*;

/// A directory on a memory file system if there is one, since the tests sync thousands of times.
fn memory_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Continues the log with an empty session, and reads it.
fn continue_log(path: &Path) -> Vec<Record<'static>> {
    let log = begin_session(path, Mask::default()).unwrap();
    log.finish(0).unwrap();
    drop(log);
    let records = read_records(path).unwrap();
    let mut checker = SequenceChecker::default();
    for record in &records {
        checker.check_record(record).unwrap();
    }
    records
}

fn recovered_fields(records: &[Record]) -> Vec<RecoveredRecord> {
    let recovered = records
        .iter()
        .filter(|record| record.kind == RecordKind::Recovered);
    recovered
        .map(|record| record.parse_metadata().unwrap())
        .collect()
}

/// The log is cut off at every byte. It can be continued, records what it lost, and the lost bytes are kept.
#[test]
fn a_log_cut_off_at_any_byte_is_recovered() {
    let (_dir, path, _) =
        write_log(|log| emit_turn(log, &[call_with_estimate(0, "get", 1, true)], "é").unwrap());
    let whole = fs::read(path).unwrap();
    let mut torn = 0;
    for cut in 0..=whole.len() {
        let dir = memory_dir();
        let path = dir.path().join("log.jsonl");
        fs::write(&path, &whole[..cut]).unwrap();
        let lines = count_line_breaks(&whole[..cut]);
        let kept = whole[..cut]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let records = continue_log(&path);
        assert!(fs::read(&path).unwrap().starts_with(&whole[..kept]));
        let recovered = recovered_fields(&records);
        if kept == cut {
            assert_eq!((records.len(), recovered.len()), (lines + 2, 0));
            continue;
        }
        torn += 1;
        assert_eq!((records.len(), recovered.len()), (lines + 3, 1));
        let copy = dir.path().join(&recovered[0].file);
        assert_eq!(fs::read(&copy).unwrap(), whole[kept..cut]);
        assert_eq!(recovered[0].dropped_bytes, (cut - kept) as u64);
        assert_eq!(recovered[0].sha256, sha256_hex(&whole[kept..cut]));
        assert_eq!(
            fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
            0o600
        );
        // The second time, there is nothing to recover.
        assert_eq!(continue_log(&path).len(), lines + 5);
    }
    report_counts(format_args!(
        "recovered from {torn} torn ends of {} cuts",
        whole.len() + 1
    ));
}

/// A recovery that was itself interrupted is finished by the next one.
#[test]
fn an_interrupted_recovery_is_finished_by_the_next() {
    let whole = fs::read(write_sample_log(&memory_dir())).unwrap();
    let cut = whole.len() - 5;
    let kept = whole[..cut]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let seq = count_line_breaks(&whole[..cut]);
    let recover = |bytes: &[u8], copies: &[(&str, &[u8])]| {
        let dir = memory_dir();
        let path = dir.path().join("log");
        fs::write(&path, bytes).unwrap();
        for (end, copy) in copies {
            fs::write(dir.path().join(format!("log.torn-{seq}{end}")), copy).unwrap();
        }
        let records = continue_log(&path);
        assert!(fs::read(&path).unwrap().starts_with(&whole[..kept]));
        let recovered = recovered_fields(&records);
        for copy in &recovered {
            let aside = fs::read(dir.path().join(&copy.file)).unwrap();
            assert_eq!(sha256_hex(&aside), copy.sha256);
        }
        recovered
            .iter()
            .map(|copy| copy.dropped_bytes)
            .collect::<Vec<_>>()
    };
    let torn = &whole[kept..cut];
    let bytes = torn.len() as u64;
    // Killed while copying, before truncating, before recording, and while recording.
    assert_eq!(recover(&whole[..cut], &[(".part", &torn[..3])]), [bytes]);
    assert_eq!(recover(&whole[..cut], &[("", torn)]), [bytes]);
    assert_eq!(recover(&whole[..kept], &[("", torn)]), [bytes]);
    let torn_again = [&whole[..kept], b"{\"seq\":5,\"id\":\"01"].concat();
    assert_eq!(recover(&torn_again, &[("", torn)]), [bytes, 17]);
}

/// Opening a log writes nothing: only beginning a session does.
#[test]
fn a_refused_log_is_untouched() {
    let dir = memory_dir();
    let path = write_sample_log(&dir);
    let whole = fs::read(&path).unwrap();
    let torn = &whole[..whole.len() - 5];
    fs::write(&path, torn).unwrap();
    let log = LockedLog::open(&path).unwrap();
    drop(log);
    assert_eq!(fs::read(&path).unwrap(), torn);
}
