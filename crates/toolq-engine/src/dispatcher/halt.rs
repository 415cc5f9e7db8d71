//! The run is to end: nothing new starts, what runs is ended, and every call is answered.

use crate::dispatcher::turn::Turn;
use crate::state::EngineState;
use toolq_core::types::{Halt, NotExecuted, Outcome};

/// Waits until the run is to end, or a budget of it may be used up.
pub(crate) async fn halting(engine: &EngineState) {
    tokio::select! {
        () = engine.control.ending() => {}
        () = engine.spending.run_out(&engine.control) => {}
    }
}

impl Turn<'_> {
    /// Looks whether the run is to end, and ends this turn if so. What was said before this turn began holds for it, too.
    pub(crate) fn heed(&mut self) {
        let control = &self.engine.control;
        if let Some(budget) = self.engine.spending.used_up(control.now()) {
            control.halt(Halt::OverBudget(budget));
        }
        if let Some(by) = control.halted()
            && self.halted.is_none()
        {
            self.halt(by);
        }
    }

    /// Ends what runs; what waits is answered at once. Each running call is answered when it has ended.
    fn halt(&mut self, by: Halt) {
        self.halted = Some(by);
        self.queue.running().for_each(|(_, run)| run.end());
        let halted = Outcome::NotExecuted(NotExecuted::Halted(by));
        for number in self.gate.withdraw(|_| true) {
            self.finish(number, &halted);
        }
    }
}
