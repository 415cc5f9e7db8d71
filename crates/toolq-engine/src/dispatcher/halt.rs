//! Halts a turn: nothing new starts, running calls are canceled, and every call is answered.

use tracing::debug;

use crate::dispatcher::turn_loop::Dispatcher;
use crate::state::EngineState;
use toolq_core::types::{HaltCause, NotExecutedCause, Outcome};

/// Waits until the run must stop, or until one of its budgets may be used up.
pub(crate) async fn wait_for_halt_or_budget(engine: &EngineState) {
    tokio::select! {
        () = engine.control.wait_for_halt() => {}
        () = engine.run_budget.wait_for_exhaustion(&engine.control) => {}
    }
}

impl Dispatcher<'_> {
    /// Halts this turn if the run must stop, even if that was decided before the turn started.
    pub(crate) fn check_halt(&mut self) {
        let control = &self.engine.control;
        if let Some(budget) = self.engine.run_budget.exhausted_budget(control.now()) {
            control.halt(HaltCause::OverBudget(budget));
        }
        if let Some(cause) = control.halt_cause()
            && self.halted_by.is_none()
        {
            self.halt_calls(cause);
        }
    }

    /// Cancels the running calls and answers the waiting ones. Running calls are answered when they have ended.
    fn halt_calls(&mut self, cause: HaltCause) {
        debug!(?cause, "the turn is halted");
        self.halted_by = Some(cause);
        self.queue
            .running_calls()
            .for_each(|(_, run)| run.cancel_attempt());
        let outcome = Outcome::NotExecuted(NotExecutedCause::Halted(cause));
        for (number, outcome) in self.withdraw_canceled_retries() {
            self.finish_call(number, outcome);
        }
        for (number, outcome) in self.withdraw_uncleared() {
            self.finish_call(number, outcome);
        }
        let waiting = self.withdraw_waiting(|_| true);
        self.skip_calls(waiting, &outcome);
    }
}
