//! What a log says about each call of a run that was cut off.

use crate::open::LockedLog;

use super::*;

use toolq_core::types::{Call, Effect, ResumeState, TurnOrigin};

/// A call of a tool with this effect.
pub(super) fn call_at(position: usize, effect: Effect) -> CheckedCall {
    let mut tool = sample_tool("t");
    tool.effect = effect;
    accepted_call(position, tool, false, "{}")
}

/// The calls of a turn: two that end, two that only start, one that is only requested, and one that is rejected.
pub(super) fn calls_of_a_turn() -> [CheckedCall; 6] {
    use Effect::{Read, Write};
    [
        call_at(0, Read),
        call_at(1, Write),
        call_at(2, Read),
        call_at(3, Write),
        call_at(4, Write),
        rejected_call(5, "t"),
    ]
}

pub(super) fn emit_until(log: &mut SessionLog, calls: &[CheckedCall]) {
    let turn = Event::TurnStarted {
        turn: 0,
        parent: None,
        origin: &TurnOrigin::default(),
    };
    log.emit(&[turn]).unwrap();
    for checked in calls {
        let batch = matches!(checked.verdict, Verdict::Accepted(_)).then_some(0);
        log.emit(&[Event::Queued { checked, batch }]).unwrap();
        let call = CallRef::new(&checked.call, batch);
        let position = checked.call.position;
        match &checked.verdict {
            Verdict::Accepted(accepted) if position < 4 => {
                let started = Event::Started {
                    call: &call,
                    accepted,
                    attempt: 1,
                    idempotency_key: "key",
                    waited: None,
                };
                log.emit(&[started]).unwrap();
            }
            Verdict::Accepted(_) => {}
            Verdict::Rejected(rejection) => {
                let outcome = Outcome::Rejected((**rejection).clone());
                emit_finished(log, &call, &outcome, "no", (0, 0)).unwrap();
            }
        }
        if position < 2 {
            emit_finished(log, &call, &success_outcome("done"), "done", (1, 1)).unwrap();
        }
    }
}

fn read_history(path: &Path) -> TaskHistory {
    let mut history = TaskHistory::default();
    let log = LockedLog::open(path, |record, end| history.apply_record(record, end)).unwrap();
    history.set_source(path.to_owned(), log.clone_file().unwrap());
    history
}

/// Runs these calls as far as they come, without an end of the session.
pub(super) fn cut_off_log(calls: &[CheckedCall]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = begin_session(&path, Mask::default()).unwrap();
    emit_until(&mut log, calls);
    drop(log);
    (dir, path)
}

#[test]
fn each_call_of_a_run_that_was_cut_off_is_known_as_far_as_it_came() {
    let calls = calls_of_a_turn();
    let (_dir, path) = cut_off_log(&calls);
    let history = read_history(&path);
    let unknown = call_at(6, Effect::Read);
    let resumed = |checked: &CheckedCall| match history.resume_state(checked).unwrap() {
        ResumeState::NotStarted => "not started",
        ResumeState::Started(_) => "started",
        ResumeState::NeedsProbe(_) => "needs probe",
        ResumeState::InDoubt(_) => "in doubt",
        ResumeState::Answered(_) => "answered",
    };
    // In the log, has a result, undecided, needs the current tools.
    for (checked, facts, state) in [
        (&calls[0], [true, true, false, false], "answered"),
        (&calls[1], [true, true, false, false], "answered"),
        (&calls[2], [true, false, true, true], "started"),
        (&calls[3], [true, false, true, false], "in doubt"),
        (&calls[4], [true, false, true, true], "not started"),
        (&calls[5], [true, true, true, false], "not started"),
        (&unknown, [false, false, true, true], "not started"),
    ] {
        let call = &checked.call;
        let found = [
            history.contains(call),
            history.has_result(call),
            history.is_undecided(call),
            history.needs_current_tools(checked),
        ];
        assert_eq!(found, facts, "{}", call.position);
        assert_eq!(resumed(checked), state, "{}", call.position);
    }
    let accepted_now = call_at(5, Effect::Read);
    assert!(history.needs_current_tools(&accepted_now));
}

/// The id doesn't count, since models and recordings reuse ids.
#[test]
fn a_call_is_the_same_if_its_tool_and_its_input_are() {
    let calls = calls_of_a_turn();
    let (_dir, path) = cut_off_log(&calls);
    let history = read_history(&path);
    let mask = Mask::default();
    let call = calls[0].call.clone();
    let with_id = Call {
        id: "other".to_owned(),
        ..call.clone()
    };
    for (call, has_same_id) in [(&call, true), (&with_id, false)] {
        assert_eq!(history.check_call(call, &mask), Ok(true));
        assert_eq!(history.has_same_id(call, &mask), has_same_id);
    }
    for changed in [
        Call {
            name: "u".into(),
            ..call.clone()
        },
        Call {
            input: Input::parse(r#"{"n":1}"#).map_err(Box::new),
            ..call.clone()
        },
    ] {
        assert!(history.check_call(&changed, &mask).is_err());
    }
    let later = Call { turn: 1, ..call };
    assert_eq!(history.check_call(&later, &mask), Ok(false));
}

#[test]
fn only_a_start_of_a_tool_that_writes_is_an_effect() {
    let calls = calls_of_a_turn();
    for (range, is_answered, had_effects) in [
        (0..1, true, false),
        (0..2, true, true),
        (1..2, true, true),
        (2..3, false, false),
        (3..4, false, true),
        (4..5, false, false),
        (5..6, true, false),
        (0..6, false, true),
    ] {
        let (_dir, path) = cut_off_log(&calls[range.clone()]);
        let history = read_history(&path);
        assert_eq!(history.is_answered(), is_answered, "{range:?}");
        assert_eq!(history.had_effects(), had_effects, "{range:?}");
        assert_eq!(history.count_input_calls(), range.len());
    }
}

/// Half a record at the end is what a killed run leaves; anything else that is wrong could hide a call.
#[test]
fn calls_in_doubt_are_listed_from_a_torn_log_but_not_from_a_damaged_one() {
    let calls = calls_of_a_turn();
    let (_dir, path) = cut_off_log(&calls[3..4]);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"seq\":");
    fs::write(&path, &bytes).unwrap();
    let listed = list_calls_in_doubt(&path).unwrap();
    let ids: Vec<_> = listed.iter().map(|call| &*call.resolve_id).collect();
    assert_eq!(ids, ["toolu_3"]);
    assert_eq!(listed[0].input.as_deref(), Some("{}"));
    assert!(!listed[0].was_killed, "this process is still there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(list_calls_in_doubt(&path).is_err());
}

/// A session without an end that another one followed was killed, regardless of what runs under its process id now.
#[test]
fn a_session_that_was_resumed_without_an_end_counts_as_killed() {
    let calls = calls_of_a_turn();
    let (_dir, path) = cut_off_log(&calls[3..4]);
    let log = PreparedLog::open(&path, BeginMode::Resume, TaskKey::default()).unwrap();
    let log = log.begin_session(&session_header(), Arc::new(Mask::default()), fixed_clock());
    drop(log.unwrap());
    let listed = list_calls_in_doubt(&path).unwrap();
    assert!(listed[0].was_killed);
}
