//! Which calls a user can resolve, and by which ids.

use crate::tests::agents::emit_start;
use crate::tests::resuming::{call_at, calls_of_a_turn, cut_off_log, emit_until};

use super::*;

use toolq_core::types::{Effect, ResumeState};

fn resolve_as_done(path: &Path, id: &str) -> Result<bool, ResolveError> {
    let resolution = Resolution::Done {
        result: "paid".to_owned(),
        is_error: false,
    };
    let resolved = resolve_call(path, id, &resolution, None, &Mask::default(), fixed_clock());
    resolved.map(|call| call.can_resume)
}

/// Begins another session, which runs these calls as far as they come.
fn run_again(path: &Path, mode: BeginMode, calls: &[CheckedCall]) {
    let log = PreparedLog::open(path, mode, TaskKey::default()).unwrap();
    let log = log.begin_session(&session_header(), Arc::new(Mask::default()), fixed_clock());
    emit_until(&mut log.unwrap(), calls);
}

/// Begins another session, which starts these calls.
fn start_again(path: &Path, mode: BeginMode, calls: &[CheckedCall]) {
    let log = PreparedLog::open(path, mode, TaskKey::default()).unwrap();
    let log = log.begin_session(&session_header(), Arc::new(Mask::default()), fixed_clock());
    let mut log = log.unwrap();
    emit_until(&mut log, &[]);
    for checked in calls {
        let batch = Some(0);
        log.emit(&[Event::Queued { checked, batch }]).unwrap();
        emit_start(&mut log, &CallRef::new(&checked.call, batch), checked);
    }
}

/// The ids of the log's `tool_call` records.
fn ids_of_calls(path: &Path) -> Vec<String> {
    let lines = read_lines(path);
    let calls = lines.iter().filter(|line| line["type"] == "tool_call");
    calls
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_call_that_needs_no_resolution_is_refused_with_the_reason() {
    let (_dir, path) = cut_off_log(&calls_of_a_turn());
    assert!(resolve_as_done(&path, "toolu_3").unwrap());
    for (id, message) in [
        ("toolu_1", "already has its result"),
        ("toolu_3", "is already resolved"),
        ("toolu_4", "was never started"),
    ] {
        let error = resolve_as_done(&path, id).unwrap_err().to_string();
        let expected = format!("the call {id} {message}, so there is nothing to resolve");
        assert_eq!(error, expected);
    }
}

/// A log in which calls with these ids are cut off.
fn log_with_started_calls(ids: &[&str]) -> (TempDir, PathBuf) {
    let (dir, path) = cut_off_log(&[]);
    let calls = ids.iter().enumerate().map(|(position, id)| {
        let mut checked = call_at(position, Effect::Write);
        checked.call.id = (*id).to_owned();
        checked
    });
    let calls: Vec<_> = calls.collect();
    start_again(&path, BeginMode::Resume, &calls);
    (dir, path)
}

#[test]
fn an_unknown_id_is_answered_with_the_calls_that_can_be_resolved() {
    let list = |ids: &[&str]| {
        let (_dir, path) = log_with_started_calls(ids);
        match resolve_as_done(&path, "none") {
            Err(ResolveError::UnknownCall(id, labels)) if id == "none" => {
                (labels, ids_of_calls(&path))
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(list(&[]).0, [""; 0]);
    assert_eq!(list(&["a", "b"]).0, ["a (t)", "b (t)"]);
    let five = ["a (t)", "b (t)", "c (t)", "d (t)", "e (t)"];
    assert_eq!(list(&["a", "b", "c", "d", "e"]).0, five);
    let seven = list(&["a", "b", "c", "d", "e", "f", "g"]).0;
    assert_eq!(
        (&seven[..5], &*seven[5]),
        (&five.map(str::to_owned)[..], "2 more")
    );
    let (labels, ids) = list(&["a", "b", "a"]);
    let by_record = |position: usize| format!("{} (turn 0, call {position}, t)", ids[position]);
    assert_eq!(labels, [by_record(0), "b (t)".to_owned(), by_record(2)]);
}

#[test]
fn calls_that_share_their_id_are_resolved_by_their_records() {
    let (_dir, path) = log_with_started_calls(&["a", "b", "a"]);
    let Err(ResolveError::AmbiguousId(id, labels)) = resolve_as_done(&path, "a") else {
        panic!("two calls have the id");
    };
    assert_eq!((&*id, labels.len()), ("a", 2));
    let ids = ids_of_calls(&path);
    assert!(resolve_as_done(&path, &ids[0]).unwrap());
    // Now only one is left with the id.
    assert!(resolve_as_done(&path, "a").unwrap());
    assert!(resolve_as_done(&path, &ids[2]).is_err());
}

/// The id that a list of calls in doubt shows can be typed in a shell and means one call.
#[test]
fn a_call_is_shown_with_an_id_that_resolves_it() {
    let shown = |ids: &[&str]| {
        let (_dir, path) = log_with_started_calls(ids);
        let calls = list_calls_in_doubt(&path).unwrap();
        let records = ids_of_calls(&path);
        let by_record = calls.iter().zip(records).map(|(call, record)| {
            assert!(call.resolve_id == record || call.resolve_id == call.tool_use_id);
            call.resolve_id == record
        });
        by_record.collect::<Vec<_>>()
    };
    assert_eq!(shown(&["toolu_1", "a-b"]), [false, false]);
    assert_eq!(shown(&["a", "b", "a"]), [true, false, true]);
    assert_eq!(shown(&["-a", "a b", "$(a)", "é"]), [true; 4]);
}

/// Another run begun after it doesn't settle a call, but only the last task can be resumed.
#[test]
fn a_call_of_an_earlier_task_can_be_resolved_but_not_resumed() {
    let in_doubt = [call_at(3, Effect::Write)];
    let other = [call_at(0, Effect::Read)];
    for (mode, can_resume) in [(BeginMode::Resume, true), (BeginMode::ForceNewTask, false)] {
        let (_dir, path) = cut_off_log(&in_doubt);
        run_again(&path, mode, &other);
        assert_eq!(resolve_as_done(&path, "toolu_3").unwrap(), can_resume);
        let again = resolve_as_done(&path, "toolu_3").unwrap_err();
        assert!(again.to_string().contains("is already resolved"), "{again}");
    }
}

/// What the user says the model reads from now on.
#[test]
fn a_resolution_is_the_result_of_its_call() {
    let calls = [call_at(3, Effect::Write)];
    for (is_error, done) in [(false, true), (true, true), (false, false)] {
        let (_dir, path) = cut_off_log(&calls);
        let result = "paid".to_owned();
        let resolution = if done {
            Resolution::Done { result, is_error }
        } else {
            Resolution::NotDone
        };
        let mask = Mask::default();
        resolve_call(&path, "toolu_3", &resolution, None, &mask, fixed_clock()).unwrap();
        let log = PreparedLog::open(&path, BeginMode::Resume, TaskKey::default()).unwrap();
        match log.history().resume_state(&calls[0]).unwrap() {
            ResumeState::Answered(restored) if done => {
                assert!(matches!(restored.content, ResultContent::Text(text) if text == "paid"));
                assert_eq!(restored.is_error, is_error);
            }
            ResumeState::Started(prior) if !done => assert_eq!(prior.count, 1),
            state => panic!("{state:?}"),
        }
    }
}

/// The process of a session that has an end wasn't killed, even if it left a call in doubt.
#[test]
fn a_session_with_an_end_was_not_killed() {
    let calls = calls_of_a_turn();
    let (_dir, path, _) = write_log(|log| emit_until(log, &calls));
    run_again(&path, BeginMode::Resume, &[]);
    let listed = list_calls_in_doubt(&path).unwrap();
    let found: Vec<_> = listed
        .iter()
        .map(|call| (&*call.resolve_id, call.was_killed))
        .collect();
    assert_eq!(found, [("toolu_3", false)]);
}
