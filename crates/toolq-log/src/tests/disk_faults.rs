//! Regardless of what a disk does, every promise is on record, and every record is whole.

use std::io::Write as _;

use super::*;

use crate::memory::LogIndex;
use crate::tests::faulty_disk::{DiskFault, DiskSnapshot, DurabilityPromise, FaultyDisk};
use crate::write::Journal;
use crate::write::log_file::Storage;
use toolq_core::types::{Effect, EmitError, TurnOrigin};

/// Four calls of various effects, each in a batch of its own, then two `write` calls at once.
const EFFECTS: [Effect; 6] = [
    Effect::Read,
    Effect::Write,
    Effect::Idempotent,
    Effect::Read,
    Effect::Write,
    Effect::Write,
];

fn call_at(position: usize) -> CheckedCall {
    let mut tool = sample_tool("pay");
    tool.effect = EFFECTS[position];
    accepted_call(position, tool, false, r#"{"n":1}"#)
}

/// Begins a session on this disk. Its path is only a name.
fn begin_on_disk(disk: &FaultyDisk) -> Result<SessionLog, EmitError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    fs::write(&path, "").unwrap();
    let index = LogIndex::open(&path).unwrap().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let journal = Journal::new("/log".into(), storage, (0, 0), fixed_clock()).unwrap();
    let memory = (RememberedIn::log(&path), MemoryUse::default());
    let log = SessionLog::begin(
        journal,
        session_record(),
        memory,
        Arc::default(),
        index,
        (Vec::new(), None),
    );
    log.map_err(|error| EmitError(error.to_string()))
}

/// Blocks until what was recorded is durable, as the engine does before a call that writes starts or is answered.
fn sync(log: &SessionLog) -> Result<(), EmitError> {
    log.recorder().journal.sync()
}

/// Runs a session on this disk like the engine and the printer do: what the log refuses doesn't happen.
fn run_session(disk: &FaultyDisk) -> Result<(), EmitError> {
    let mut log = begin_on_disk(disk)?;
    let checked: Vec<CheckedCall> = (0..EFFECTS.len()).map(call_at).collect();
    let _ = log.emit(&[Event::TurnStarted {
        turn: 0,
        parent: None,
        origin: &TurnOrigin::default(),
    }]);
    for checked in &checked {
        let batch = Some(0);
        let _ = log.emit(&[Event::Queued { checked, batch }]);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 6)] {
        run_batch(&mut log, disk, &checked[from..to]);
    }
    log.finish(0)
}

fn run_batch(log: &mut SessionLog, disk: &FaultyDisk, checked: &[CheckedCall]) {
    let calls: Vec<CallRef> = checked
        .iter()
        .map(|checked| CallRef::new(&checked.call, Some(0)))
        .collect();
    let starts = checked.iter().zip(&calls);
    let starts: Vec<Event<'_>> = starts
        .map(|(checked, call)| started_event(checked, call))
        .collect();
    let has_effect = |call: &CallRef| EFFECTS[call.position] != Effect::Read;
    let emitted = log.emit(&starts);
    if emitted.is_err() || calls.iter().any(has_effect) && sync(log).is_err() {
        return;
    }
    for call in calls.iter().filter(|call| has_effect(call)) {
        disk.record_promise(DurabilityPromise::Started(call.position));
    }
    for call in &calls {
        let finished = emit_finished(log, call, &success_outcome("done"), "done", (1, 1));
        // A result that the log can't store is still printed, and the exit code reports the failure.
        if has_effect(call) && finished.and_then(|()| sync(log)).is_ok() {
            disk.record_promise(DurabilityPromise::ResultRead(call.position));
        }
    }
}

fn started_event<'e>(checked: &'e CheckedCall, call: &'e CallRef) -> Event<'e> {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    Event::Started {
        call,
        accepted,
        attempt: 1,
        idempotency_key: "key",
        claim: None,
        waited: None,
    }
}

/// Returns the records in these bytes, up to a torn end, or `None` if they are damaged so that the log would be
/// refused.
fn load_records(bytes: &[u8]) -> Option<Vec<Record<'static>>> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut found = Vec::new();
    for record in RecordReader::from_file(file) {
        match record {
            Ok(record) => found.push(record),
            Err(corruption) if corruption.is_torn_end() => return Some(found),
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Asserts that what is left of a disk keeps every promise, unless the log would be refused. Returns whether it would
/// be accepted.
fn keeps_promises(snapshot: &DiskSnapshot, left: &[u8]) -> bool {
    let Some(records) = load_records(left) else {
        return false;
    };
    let mut checker = SequenceChecker::default();
    for record in &records {
        checker.check_record(record).unwrap();
    }
    let has = |kind: &RecordKind, position: usize| {
        let id = format!("toolu_{position}");
        records.iter().any(|record| {
            record.kind == *kind && record.raw_metadata.get().contains(&format!("\"{id}\""))
        })
    };
    for promise in &snapshot.promises {
        match *promise {
            DurabilityPromise::Started(position) => {
                assert!(has(&RecordKind::ToolStart, position), "{promise:?}");
            }
            DurabilityPromise::ResultRead(position) => {
                assert!(has(&RecordKind::ToolResult, position), "{promise:?}");
            }
        }
    }
    true
}

/// The Nth write fails, for all N and in every way.
#[test]
fn promises_hold_if_any_write_fails() {
    let whole = FaultyDisk::default();
    run_session(&whole).unwrap();
    let (writes, bytes) = {
        let state = whole.0.lock().unwrap();
        (state.write_count, state.current.bytes.len())
    };
    let mut faults = 0;
    for at in 1..=writes {
        for fault in [
            DiskFault::Interrupted,
            DiskFault::Short(3),
            DiskFault::Short(100),
        ] {
            let disk = FaultyDisk::default();
            disk.0.lock().unwrap().write_fault = Some((at, fault));
            run_session(&disk).unwrap();
            let state = disk.0.lock().unwrap();
            assert_eq!(state.current.bytes.len(), bytes, "{at} {fault:?}");
            assert_eq!(load_records(&state.current.bytes).unwrap().len(), 21);
            faults += 1;
        }
        for fault in [
            DiskFault::Broken,
            DiskFault::Full(0),
            DiskFault::Full(3),
            DiskFault::Full(300),
        ] {
            for truncations_fail in [false, true] {
                let disk = FaultyDisk::default();
                disk.0.lock().unwrap().write_fault = Some((at, fault));
                disk.0.lock().unwrap().truncations_fail = truncations_fail;
                let ended = run_session(&disk);
                let state = disk.0.lock().unwrap();
                // There may have been enough room for the last writes.
                assert!(ended.is_err() || at + 1 >= writes, "{at} {fault:?}");
                let left = &state.current.bytes;
                assert!(truncations_fail || left.is_empty() || left.ends_with(b"\n"));
                assert!(keeps_promises(&state.current, left));
                faults += 1;
            }
        }
    }
    report_counts(format_args!("{faults} faults at {writes} writes"));
}

/// The Nth sync fails, for all N. It isn't retried, and no call with an effect starts afterward.
#[test]
fn promises_hold_if_any_sync_fails() {
    let whole = FaultyDisk::default();
    run_session(&whole).unwrap();
    let syncs = whole.count_syncs();
    for at in 1..=syncs {
        let disk = FaultyDisk::default();
        disk.0.lock().unwrap().sync_fault = Some(at);
        run_session(&disk).unwrap_err();
        let state = disk.0.lock().unwrap();
        for snapshot in &state.snapshots {
            let left = &snapshot.bytes[..snapshot.durable_len];
            assert!(keeps_promises(snapshot, left));
        }
    }
    report_counts(format_args!("{syncs} syncs failed"));
}

/// Power is lost at any moment. Data that wasn't synced is cut off, reads as zeros, or has holes.
#[test]
fn promises_hold_if_power_is_lost_at_any_moment() {
    let disk = FaultyDisk::default();
    run_session(&disk).unwrap();
    let state = disk.0.lock().unwrap();
    let (mut losses, mut refused) = (0, 0);
    for snapshot in &state.snapshots {
        let DiskSnapshot {
            bytes, durable_len, ..
        } = snapshot;
        for cut in (*durable_len..=bytes.len())
            .step_by(41)
            .chain([bytes.len()])
        {
            assert!(keeps_promises(snapshot, &bytes[..cut]));
            let mut zeros = bytes.clone();
            zeros[cut..].fill(0);
            // A file of zeros from its first bytes on isn't recognized as a log.
            assert!(keeps_promises(snapshot, &zeros) || cut < 17);
            let mut hole = bytes.clone();
            hole[*durable_len..cut].fill(0);
            refused += u32::from(!keeps_promises(snapshot, &hole));
            losses += 3;
        }
    }
    report_counts(format_args!(
        "power was lost {losses} times at {} moments; {refused} logs are refused",
        state.snapshots.len()
    ));
}
