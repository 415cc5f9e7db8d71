//! Which task of a log a new session continues or repeats.

use crate::resume::{SelectedTask, TaskSelector};
use crate::tests::listed_records::{ListedRecord, record_id, visit_listed};

use super::*;

/// A session: its id, its input, and the id of the session that it resumes (0 for none).
type ListedSession = (u128, Option<&'static str>, u128);

fn select_from(sessions: &[ListedSession], sought: Option<&str>) -> TaskSelector {
    let records = sessions.iter().map(|(id, input, resumed)| -> ListedRecord {
        let mut metadata = json!({"input_sha256": input});
        if *resumed != 0 {
            metadata["resumes"] = json!(record_id(*resumed));
        }
        (*id, "session", 0, metadata)
    });
    let records: Vec<_> = records.collect();
    let mut tasks = TaskSelector::new(sought);
    visit_listed(&records, |record, end| {
        tasks.apply_record(record, end).unwrap();
    });
    tasks
}

/// The session that began the task, how many worked on it as far as the log is followed, and the two facts.
fn describe_task(task: &SelectedTask) -> (u128, u32, bool, bool) {
    let begun_by = task.history.task_id().map_or(0, |id| id.as_u128());
    let epoch = task.history.epoch();
    (begun_by, epoch, task.has_same_input, task.is_partial)
}

#[test]
fn the_latest_task_with_the_same_input_is_chosen_else_the_last() {
    let (a, b, c) = (Some("a"), Some("b"), Some("c"));
    // The sessions; the task with the same input, else the last one; the last one.
    let cases: [(&[ListedSession], _, _); 10] = [
        (&[], (0, 0, false, false), (0, 0, false, false)),
        (&[(1, a, 0)], (1, 1, true, false), (1, 1, true, false)),
        (&[(1, b, 0)], (1, 1, false, false), (1, 1, false, false)),
        (
            &[(1, a, 0), (2, b, 0)],
            (1, 1, true, false),
            (2, 1, false, false),
        ),
        (
            &[(1, a, 0), (2, a, 0)],
            (2, 1, true, false),
            (2, 1, true, false),
        ),
        // One session with the same input is enough.
        (
            &[(1, a, 0), (2, b, 1)],
            (1, 2, true, false),
            (1, 2, true, false),
        ),
        // The task is whole when it continues after another.
        (
            &[(1, a, 0), (2, b, 0), (3, b, 1)],
            (1, 2, true, false),
            (1, 2, true, false),
        ),
        // The records of task 1 or 2 were dropped before it continued.
        (
            &[(1, b, 0), (2, a, 0), (3, b, 1)],
            (2, 1, true, false),
            (1, 1, false, true),
        ),
        (
            &[(1, a, 0), (2, b, 0), (3, c, 0), (4, b, 2)],
            (1, 1, true, false),
            (2, 1, false, true),
        ),
        (
            &[(1, b, 0), (2, c, 0), (3, a, 1)],
            (1, 1, true, true),
            (1, 1, true, true),
        ),
    ];
    for (sessions, with_same_input, last) in cases {
        let chosen = select_from(sessions, a).select_same_input();
        assert_eq!(describe_task(&chosen), with_same_input, "{sessions:?}");
        let chosen = select_from(sessions, a).select_last();
        assert_eq!(describe_task(&chosen), last, "{sessions:?}");
    }
}

/// Repeating half a task would lose results, so the last task is chosen instead.
#[test]
fn a_task_without_its_beginning_is_not_kept_for_its_input() {
    let (a, b, c) = (Some("a"), Some("b"), Some("c"));
    let sessions = [(1, b, 0), (2, c, 0), (3, a, 1), (4, b, 0)];
    let chosen = select_from(&sessions, a).select_same_input();
    assert_eq!(describe_task(&chosen), (4, 1, false, false));
}

#[test]
fn an_unknown_input_is_the_same_as_no_other() {
    for input in [None, Some("a")] {
        let chosen = select_from(&[(1, input, 0), (2, None, 0)], None).select_same_input();
        assert_eq!(describe_task(&chosen), (2, 1, false, false));
    }
}

/// This holds regardless of what came after it, and of its input.
#[test]
fn the_latest_task_that_applied_a_plan_is_chosen() {
    let session = |id: u128, plan: Option<&str>| -> ListedRecord {
        (id, "session", 0, json!({"input_sha256": "a", "plan": plan}))
    };
    let mut tasks = TaskSelector::of_plan("p");
    assert!(!tasks.has_found());
    let mut seen = Vec::new();
    let sessions = [(1, None), (2, Some("q")), (3, Some("p")), (4, None)];
    visit_listed(
        &sessions.map(|(id, plan)| session(id, plan)),
        |record, end| {
            tasks.apply_record(record, end).unwrap();
            seen.push(tasks.has_found());
        },
    );
    assert_eq!(seen, [false, false, true, true]);
    assert_eq!(
        describe_task(&tasks.select_same_input()),
        (3, 1, true, false)
    );
}
