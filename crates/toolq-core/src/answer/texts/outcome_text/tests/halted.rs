//! Calls whose run was stopped.

use super::*;

#[test]
fn a_halted_call_names_what_stopped_the_run() {
    let interrupted = |by, output: &str| Outcome::Interrupted {
        cause: by,
        output: CallOutput {
            text: output.to_owned(),
            ..CallOutput::default()
        },
    };
    let not_executed = |by| Outcome::NotExecuted(NotExecutedCause::Halted(by));
    let over_budget = |budget| not_executed(HaltCause::OverBudget(budget));
    let minute = Duration::from_mins(1);
    insta::assert_snapshot!(answer_texts(&[
        interrupted(HaltCause::Signal(2), "half"),
        not_executed(HaltCause::Signal(2)),
        interrupted(HaltCause::OverBudget(BudgetLimit::Time(minute)), ""),
        over_budget(BudgetLimit::Calls(1)),
        over_budget(BudgetLimit::Calls(20)),
        over_budget(BudgetLimit::Output(1 << 20)),
    ]), @"
        Interrupted while running: the run was stopped from outside.
        Output until then:
        half
        Hint: nothing is wrong with this call. Call it again if it is still needed.
        ---
        Not executed: the run was stopped from outside.
        Hint: nothing is wrong with this call. Call it again if it is still needed.
        ---
        Interrupted while running: this run's time budget of 1m is used up.
        Hint: the user set this limit. Continue with what you have, or tell the user what is missing.
        ---
        Not executed: this run's budget of 1 call is used up.
        Hint: the user set this limit. Continue with what you have, or tell the user what is missing.
        ---
        Not executed: this run's budget of 20 calls is used up.
        Hint: the user set this limit. Continue with what you have, or tell the user what is missing.
        ---
        Not executed: this run's output budget of 1 MiB is used up.
        Hint: the user set this limit. Continue with what you have, or tell the user what is missing.
        ");
    let write = tool_with_schema("save", json!(true));
    insta::assert_snapshot!(answer_text(Some(&write), &interrupted(HaltCause::OutputLost, "")), @"
        Interrupted while running: the run was stopped from outside.
        Hint: it may have done part of its work: check before calling it again.
        ");
}
