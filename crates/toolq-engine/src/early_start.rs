//! Starts the server of a turn's first call while the turn's other calls are still being read and checked.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::engine::Engine;
use crate::prior_calls::PriorCalls;
use toolq_core::check::CallChecker;
use toolq_core::types::{AcceptedCall, Backing, Call, ServerConfig, Verdict};

impl Engine {
    /// Starts the server of the first call of the turn that is answered next. Returns the task that waits until its program
    /// runs. Returns `None`, and starts nothing, if the call isn't one of a server with a program, or if the call, the budgets
    /// or `prior` could keep it from running.
    ///
    /// Wait for the task before checking the other calls: that takes a processor, and processes that are starting could be
    /// queued behind it, although another one is idle.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start_first_server<P: PriorCalls>(
        &self,
        first: Call,
        (checker, prior): (&CallChecker, &P),
    ) -> Option<JoinHandle<()>> {
        // The record of another call could still refuse the turn, so that nothing runs.
        if !self.may_start() || !prior.is_empty() {
            return None;
        }
        let Verdict::Accepted(accepted) = checker.check_call(first).verdict else {
            return None;
        };
        let server = self.server_to_start(&accepted)?;
        let (runner, control) = (Arc::clone(&self.state.runner), self.control());
        let runtime = Handle::current();
        // A task could have to wait for this thread, which is about to check calls.
        let start = move || runtime.block_on(runner.start_server(&server, &control));
        Some(spawn_blocking(start))
    }

    /// Returns whether the next call may start, as far as that doesn't depend on the call.
    fn may_start(&self) -> bool {
        let (control, budget) = (&self.state.control, &self.state.run_budget);
        control.halt_cause().is_none()
            && budget.has_calls_left()
            && budget.exhausted_budget(control.now()).is_none()
    }

    /// Returns the server whose program has to run for this call, unless the call may get a result in another way.
    fn server_to_start(&self, accepted: &AcceptedCall) -> Option<Arc<ServerConfig>> {
        let tool = &accepted.tool;
        let Some(Backing::Mcp(backing)) = &tool.backing else {
            return None;
        };
        let root = &self.state.settings.tools.root;
        let needs_server = backing.server.program().is_some()
            && !accepted.needs_approval
            && !tool.needs_describe()
            && self.state.circuit_breakers.paused_after(tool).is_none()
            && self.state.result_cache.find(accepted, root).is_none();
        needs_server.then(|| Arc::clone(&backing.server))
    }
}
