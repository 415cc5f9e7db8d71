//! Whatever a disk does: what was promised is on record, and what is on record is whole.

use std::io::Write as _;

use super::*;

use crate::records::Chain;
use crate::tests::disk::{Fault, FaultyDisk, Moment, Promise};
use crate::write::{Journal, LogFile};
use toolq_core::types::{Effect, Refused};

/// One call of each effect, each of its own batch, and then two at once that write.
const EFFECTS: [Effect; 6] = [
    Effect::Read,
    Effect::Write,
    Effect::Idempotent,
    Effect::Read,
    Effect::Write,
    Effect::Write,
];

fn call(position: usize) -> Checked {
    let mut tool = tool("pay");
    tool.effect = EFFECTS[position];
    accepted(position, tool, false, r#"{"n":1}"#)
}

/// A session on this disk.
fn begun(disk: &FaultyDisk, sync: Sync) -> Result<SessionLog, Refused> {
    let chain = Chain::start();
    let file = LogFile::new(disk.clone(), 0);
    let journal = Journal::new(PathBuf::from("/nowhere/log"), file, chain, clock());
    let settings = Session { sync, ..session() };
    let log = SessionLog::begin(journal, &settings, None, Arc::new(Mask::default()));
    log.map_err(|error| Refused(error.to_string()))
}

/// A run on this disk, as the engine and the printer tell it: what the log refuses does not happen.
fn run(disk: &FaultyDisk, sync: Sync) -> Result<(), Refused> {
    let mut log = begun(disk, sync)?;
    let checked: Vec<Checked> = (0..EFFECTS.len()).map(call).collect();
    let _ = log.tell(&[Event::TurnStarted {
        turn: 0,
        within: None,
    }]);
    for checked in &checked {
        let batch = Some(0);
        let _ = log.tell(&[Event::Queued { checked, batch }]);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 6)] {
        batch(&mut log, disk, &checked[from..to]);
    }
    log.finish(0)
}

fn batch(log: &mut SessionLog, disk: &FaultyDisk, checked: &[Checked]) {
    let calls: Vec<CallRef> = checked
        .iter()
        .map(|checked| CallRef::new(&checked.call, Some(0)))
        .collect();
    let starts = checked.iter().zip(&calls);
    let starts: Vec<Event<'_>> = starts
        .map(|(checked, call)| started(checked, call))
        .collect();
    if log.tell(&starts).is_err() {
        return;
    }
    let effect = |call: &CallRef| EFFECTS[call.position] != Effect::Read;
    for call in calls.iter().filter(|call| effect(call)) {
        disk.promise(Promise::Started(call.position));
    }
    for call in &calls {
        let finished = finish(log, call, &succeeded("done"), "done", (1, 1));
        // A result that the log can't keep is printed all the same, and the exit code says so.
        let settled = finished.and_then(|()| log.settle());
        if settled.is_ok() && effect(call) {
            disk.promise(Promise::Read(call.position));
        }
    }
}

fn started<'e>(checked: &'e Checked, call: &'e CallRef) -> Event<'e> {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    Event::Started {
        call,
        accepted,
        attempt: 1,
        idempotency_key: "key",
    }
}

/// The records of these bytes, up to a torn end; none where they are damaged, so that nobody would continue.
fn loaded(bytes: &[u8]) -> Option<Vec<Record<'static>>> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut found = Vec::new();
    for record in Records::of(file) {
        match record {
            Ok(record) => found.push(record),
            Err(damage) if damage.is_torn() => return Some(found),
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Every promise is kept by what is left of a disk, or nobody would continue it. Says whether somebody would.
fn check(moment: &Moment, left: &[u8]) -> bool {
    let Some(records) = loaded(left) else {
        return false;
    };
    let mut order = Order::default();
    for record in &records {
        order.take(record).unwrap();
    }
    let has = |kind: &Kind, position: usize| {
        let id = format!("toolu_{position}");
        records.iter().any(|record| {
            record.kind == *kind && record.metadata.get().contains(&format!("\"{id}\""))
        })
    };
    for promise in &moment.promises {
        match *promise {
            Promise::Started(position) => assert!(has(&Kind::ToolStart, position), "{promise:?}"),
            Promise::Read(position) => assert!(has(&Kind::ToolResult, position), "{promise:?}"),
        }
    }
    true
}

/// FAULTS 110–113: the N-th write fails, for all N and in every way.
#[test]
fn any_write_may_fail() {
    let whole = FaultyDisk::default();
    run(&whole, Sync::Auto).unwrap();
    let (writes, bytes) = {
        let state = whole.0.lock().unwrap();
        (state.writes, state.now.bytes.len())
    };
    let mut faults = 0;
    for at in 1..=writes {
        for fault in [Fault::Interrupted, Fault::Short(3), Fault::Short(100)] {
            let disk = FaultyDisk::default();
            disk.0.lock().unwrap().write_fault = Some((at, fault));
            run(&disk, Sync::Auto).unwrap();
            let state = disk.0.lock().unwrap();
            assert_eq!(state.now.bytes.len(), bytes, "{at} {fault:?}");
            assert_eq!(loaded(&state.now.bytes).unwrap().len(), 21);
            faults += 1;
        }
        for fault in [
            Fault::Broken,
            Fault::Full(0),
            Fault::Full(3),
            Fault::Full(300),
        ] {
            for truncations_fail in [false, true] {
                let disk = FaultyDisk::default();
                disk.0.lock().unwrap().write_fault = Some((at, fault));
                disk.0.lock().unwrap().truncations_fail = truncations_fail;
                let ended = run(&disk, Sync::Auto);
                let state = disk.0.lock().unwrap();
                // There may have been room enough for the last ones.
                assert!(ended.is_err() || at + 1 >= writes, "{at} {fault:?}");
                let left = &state.now.bytes;
                assert!(truncations_fail || left.is_empty() || left.ends_with(b"\n"));
                assert!(check(&state.now, left));
                faults += 1;
            }
        }
    }
    say(format_args!("{faults} faults at {writes} writes"));
}

/// FAULTS 112: the N-th sync fails, for all N. It is not tried again, and nothing that does something starts any more.
#[test]
fn any_sync_may_fail() {
    let mut total = 0;
    for sync in [Sync::Auto, Sync::All] {
        let whole = FaultyDisk::default();
        run(&whole, sync).unwrap();
        let syncs = whole.0.lock().unwrap().syncs;
        total += syncs;
        for at in 1..=syncs {
            let disk = FaultyDisk::default();
            disk.0.lock().unwrap().sync_fault = Some(at);
            run(&disk, sync).unwrap_err();
            let state = disk.0.lock().unwrap();
            for moment in &state.moments {
                assert!(check(moment, &moment.bytes[..moment.durable]));
            }
        }
    }
    say(format_args!("{total} syncs failed"));
}

/// The price of durability: two syncs for a call that writes, one more for the session and one for its end; one for the
/// starts of a batch; none for what is read.
#[test]
fn syncs_are_counted() {
    let syncs = |sync| {
        let disk = FaultyDisk::default();
        run(&disk, sync).unwrap();
        disk.count_syncs()
    };
    // Two calls that write and one that may run again have two each; two at once share the one for their starts.
    assert_eq!(syncs(Sync::Auto), 2 + 2 + 2 + 3);
    assert_eq!(syncs(Sync::All), 2 + 2 * 4 + 3);
}

/// Calls that write one after another: the result of one shares a sync with the start of the next.
#[test]
fn a_chain_has_a_sync_for_each_call() {
    let disk = FaultyDisk::default();
    let mut log = begun(&disk, Sync::Auto).unwrap();
    let chain = [1, 4, 5].map(call);
    for checked in &chain {
        let call = CallRef::new(&checked.call, Some(0));
        let batch = Some(0);
        log.tell(&[Event::Queued { checked, batch }]).unwrap();
        log.tell(&[started(checked, &call)]).unwrap();
        finish(&mut log, &call, &succeeded("done"), "done", (1, 1)).unwrap();
    }
    log.settle().unwrap();
    log.settle().unwrap();
    log.finish(0).unwrap();
    // One for the beginning and one for the end, three starts, and the last result.
    assert_eq!(disk.count_syncs(), 2 + 3 + 1);
}

/// FAULTS 125: power is lost at any moment. What was not made durable is there in part, or as zeros, or as holes.
#[test]
fn power_may_be_lost_at_any_moment() {
    let disk = FaultyDisk::default();
    run(&disk, Sync::Auto).unwrap();
    let state = disk.0.lock().unwrap();
    let (mut losses, mut refused) = (0, 0);
    for moment in &state.moments {
        let Moment { bytes, durable, .. } = moment;
        for cut in (*durable..=bytes.len()).step_by(41).chain([bytes.len()]) {
            assert!(check(moment, &bytes[..cut]));
            let mut zeros = bytes.clone();
            zeros[cut..].fill(0);
            // Zeros from the first bytes on may be anybody's file.
            assert!(check(moment, &zeros) || cut < 17);
            let mut hole = bytes.clone();
            hole[*durable..cut].fill(0);
            refused += u32::from(!check(moment, &hole));
            losses += 3;
        }
    }
    say(format_args!(
        "power was lost {losses} times at {} moments; {refused} logs are refused",
        state.moments.len()
    ));
}
