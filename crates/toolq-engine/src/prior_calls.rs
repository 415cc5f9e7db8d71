//! What earlier runs recorded about calls, and how a turn that was read as a whole runs with it.

use std::convert::Infallible;

use crate::engine::Engine;
use crate::settings::AnswerDelivery;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::types::{Call, CheckedCall, EventSink, ResumeState, Turn};

/// What earlier runs recorded about the calls of this one.
pub trait PriorCalls: Sync {
    /// Why a call contradicts the record.
    type Conflict: Send;

    /// Returns those of `calls` that may still run, and so need the schemas of their tools.
    fn open_calls<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call>;

    /// Returns what is recorded about a call: the state that it has from the input, unless there is a better record.
    ///
    /// # Errors
    /// The record has a different call in its place.
    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, Self::Conflict>;

    /// Adds to all calls of a turn what is recorded about them.
    ///
    /// # Errors
    /// The record has a different call in the place of one of them, or the turn may not run at all.
    fn resume_calls(&self, calls: &mut [CheckedCall]) -> Result<(), Self::Conflict> {
        calls.iter_mut().try_for_each(|checked| {
            checked.resume_state = self.resume_state(checked)?;
            Ok(())
        })
    }
}

/// Nothing but the input is known about calls.
#[derive(Debug)]
pub struct NoPriorCalls;

impl PriorCalls for NoPriorCalls {
    type Conflict = Infallible;

    fn open_calls<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
        calls.iter().collect()
    }

    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, Infallible> {
        Ok(checked.resume_state.clone())
    }
}

impl Engine {
    /// Answers a turn that was read as a whole: describes the tools that it needs, checks its calls, adds what is recorded
    /// about them, and runs them. Returns when each of them has been answered and delivered.
    ///
    /// # Errors
    /// A call contradicts the record of an earlier run. Nothing ran.
    pub async fn answer_turn<P: PriorCalls>(
        &mut self,
        turn: Turn,
        (checker, prior): (&CallChecker, &P),
        sink: &mut dyn EventSink,
        delivery: &mut dyn AnswerDelivery,
    ) -> Result<(), P::Conflict> {
        let tools = &self.state.settings.tools;
        let undescribed = undescribed_tools(tools, prior.open_calls(&turn.calls));
        let discovery = self.schema_discovery();
        discovery.discover(&undescribed, sink).await;
        self.set_turn_origin(turn.origin.clone());
        let number = turn.number;
        let mut calls = checker.check_turn(turn);
        prior.resume_calls(&mut calls)?;
        self.run_turn(number, calls, sink, delivery).await;
        Ok(())
    }
}
