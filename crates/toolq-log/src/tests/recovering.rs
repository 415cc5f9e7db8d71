//! A log whose end is torn goes on behind its last whole record, and forgets nothing.

use crate::open;
use crate::open::Log;
use crate::read::Flaw;
use crate::records::line;
use crate::tests::reading::{breaks, read, sample};

use super::*;

/// A folder in memory, where there is one: thousands of syncs are quick there.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Continues the log by a session that does nothing, and reads it.
fn continued(path: &Path) -> Vec<Record<'static>> {
    let log = Log::open(path, |_, _| Ok(())).unwrap();
    let mut log = log
        .begin(&session(), None, Arc::new(Mask::default()), clock())
        .unwrap();
    log.finish(0).unwrap();
    drop(log);
    let records = read(path).unwrap();
    let mut order = Order::default();
    for record in &records {
        order.take(record).unwrap();
    }
    records
}

fn recovered(records: &[Record]) -> Vec<open::RecoveredFields> {
    let recovered = records
        .iter()
        .filter(|record| record.kind == Kind::Recovered);
    recovered.map(|record| record.metadata().unwrap()).collect()
}

/// FAULTS 109: the end is cut off at every byte. The log goes on, says what it lost, and the bytes are kept.
#[test]
fn every_cut_is_recovered_from() {
    let (_folder, path, _) = log_of(|log| play(log, &[timed(0, "get", 1, true)], "é").unwrap());
    let whole = fs::read(path).unwrap();
    let mut torn = 0;
    for cut in 0..=whole.len() {
        let folder = folder();
        let path = folder.path().join("log.jsonl");
        fs::write(&path, &whole[..cut]).unwrap();
        let lines = breaks(&whole[..cut]);
        let kept = whole[..cut]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let records = continued(&path);
        assert!(fs::read(&path).unwrap().starts_with(&whole[..kept]));
        let recovered = recovered(&records);
        if kept == cut {
            assert_eq!((records.len(), recovered.len()), (lines + 2, 0));
            continue;
        }
        torn += 1;
        assert_eq!((records.len(), recovered.len()), (lines + 3, 1));
        let aside = folder.path().join(&recovered[0].file);
        assert_eq!(fs::read(&aside).unwrap(), whole[kept..cut]);
        assert_eq!(recovered[0].dropped_bytes, (cut - kept) as u64);
        assert_eq!(recovered[0].sha256, line::sha256(&whole[kept..cut]));
        assert_eq!(
            fs::metadata(&aside).unwrap().permissions().mode() & 0o777,
            0o600
        );
        // The second time there is nothing to recover.
        assert_eq!(continued(&path).len(), lines + 5);
    }
    say(format_args!(
        "recovered from {torn} torn ends of {} cuts",
        whole.len() + 1
    ));
}

/// FAULTS 124: a recovery that was itself cut short is finished by the next one.
#[test]
fn recovery_may_be_cut_short() {
    let whole = fs::read(sample(&folder())).unwrap();
    let cut = whole.len() - 5;
    let kept = whole[..cut]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let seq = breaks(&whole[..cut]);
    let left = |bytes: &[u8], copies: &[(&str, &[u8])]| {
        let folder = folder();
        let path = folder.path().join("log");
        fs::write(&path, bytes).unwrap();
        for (end, copy) in copies {
            fs::write(folder.path().join(format!("log.torn-{seq}{end}")), copy).unwrap();
        }
        let records = continued(&path);
        assert!(fs::read(&path).unwrap().starts_with(&whole[..kept]));
        let recovered = recovered(&records);
        for copy in &recovered {
            let aside = fs::read(folder.path().join(&copy.file)).unwrap();
            assert_eq!(line::sha256(&aside), copy.sha256);
        }
        recovered
            .iter()
            .map(|copy| copy.dropped_bytes)
            .collect::<Vec<_>>()
    };
    let torn = &whole[kept..cut];
    let bytes = torn.len() as u64;
    // Killed while it copied, before it cut, before it noted, and while it noted.
    assert_eq!(left(&whole[..cut], &[(".part", &torn[..3])]), [bytes]);
    assert_eq!(left(&whole[..cut], &[("", torn)]), [bytes]);
    assert_eq!(left(&whole[..kept], &[("", torn)]), [bytes]);
    let noting = [&whole[..kept], b"{\"seq\":5,\"id\":\"01"].concat();
    assert_eq!(left(&noting, &[("", torn)]), [bytes, 17]);
}

/// Nothing is written before somebody decides to go on.
#[test]
fn a_refused_log_is_untouched() {
    let folder = folder();
    let path = sample(&folder);
    let whole = fs::read(&path).unwrap();
    let torn = &whole[..whole.len() - 5];
    fs::write(&path, torn).unwrap();
    let log = Log::open(&path, |_, _| Ok(())).unwrap();
    assert!(log.is_unfinished());
    drop(log);
    assert_eq!(fs::read(&path).unwrap(), torn);
    // A visitor's refusal, too, names the line.
    let refused = Log::open(&path, |record, _| match record.seq {
        3 => Err(Damage {
            line: record.line,
            offset: record.offset,
            what: Flaw::Disorder("no"),
        }),
        _ => Ok(()),
    });
    let error = refused.err().unwrap().to_string();
    assert!(error.ends_with("is damaged in line 4: no"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), torn);
}
