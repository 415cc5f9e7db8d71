//! Starts the server of a turn's first call before the other calls are read and checked.

use std::sync::Arc;

use crate::engine::Engine;
use crate::prior_calls::PriorCalls;
use toolq_core::check::CallChecker;
use toolq_core::types::{AcceptedCall, Backing, Call, ServerConfig};

impl Engine {
    /// Starts the server of the first call of the turn that is answered next, and waits until its program runs, for a limited
    /// time. Starts nothing if the call isn't one of a server with a program, or if the call, the budgets or `prior` could keep
    /// it from running.
    ///
    /// Wait for this before checking the other calls: checking keeps a core busy, and the kernel may queue the starting
    /// processes behind it even though another core is idle.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start_first_server<P: PriorCalls>(
        &self,
        first: Call,
        (checker, prior): (&CallChecker, &P),
    ) {
        let Some(server) = self.first_server(first, checker, prior) else {
            return;
        };
        let (runner, control) = (Arc::clone(&self.state.runner), self.control());
        let start_control = control.clone();
        // A task, since a start that is dropped halfway could be missing in the log.
        let start = tokio::spawn(async move { runner.start_server(&server, &start_control).await });
        tokio::select! {
            // If the start has panicked, the first call starts the server again.
            _ = start => {}
            // The turn is answered without running anything.
            () = control.wait_for_halt() => {}
        }
    }

    fn first_server<P: PriorCalls>(
        &self,
        first: Call,
        checker: &CallChecker,
        prior: &P,
    ) -> Option<Arc<ServerConfig>> {
        // The record of another call could still refuse the turn, so that nothing runs.
        if !self.may_start() || !prior.is_empty() {
            return None;
        }
        let checked = checker.check_call(first);
        self.server_to_start(checked.verdict.accepted()?)
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
