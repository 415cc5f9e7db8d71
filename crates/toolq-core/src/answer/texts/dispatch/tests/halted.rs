//! Calls of a run that was ended.

use super::*;

/// FAULTS 60, 133: who ended the run, what was written, and what to make of it.
#[test]
fn calls_of_a_run_that_was_ended() {
    let ended = |by, output: &str| Outcome::Interrupted {
        by,
        output: output.to_owned(),
        stderr: String::new(),
        captured: Captured::default(),
    };
    let waiting = |by| Outcome::NotExecuted(NotExecuted::Halted(by));
    let over = |budget| waiting(Halt::OverBudget(budget));
    let minute = Duration::from_mins(1);
    insta::assert_snapshot!(texts(&[
        ended(Halt::Signal(2), "half"),
        waiting(Halt::Signal(2)),
        ended(Halt::OverBudget(Budget::Time(minute)), ""),
        over(Budget::Calls(1)),
        over(Budget::Calls(20)),
        over(Budget::Output(1 << 20)),
    ]), @"
        Interrupted while it ran: the run was ended from outside.
        Until then it wrote:
        half
        Hint: nothing is wrong with this call. Call it again if it is still needed.
        ---
        Not executed: the run was ended from outside.
        Hint: nothing is wrong with this call. Call it again if it is still needed.
        ---
        Interrupted while it ran: the time budget of this run, 1m, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ---
        Not executed: the budget of this run, 1 call, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ---
        Not executed: the budget of this run, 20 calls, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ---
        Not executed: the output budget of this run, 1 MiB, is used up.
        Hint: this limit is the user's. Go on with what there is, or tell the user what is missing.
        ");
    let write = tool_with_schema("save", json!(true));
    insta::assert_snapshot!(text_of(Some(&write), &ended(Halt::OutputLost, "")), @"
        Interrupted while it ran: the run was ended from outside.
        Hint: it may have done a part of its work. Look before you call it again.
        ");
}
