//! What an earlier run means for another run with the same input.

use crate::call_log::LoggedCallState;
use crate::resume::TaskHistory;
use crate::resume::logged_call::LoggedCall;
use toolq_core::types::{Call, Effect};

impl TaskHistory {
    /// Returns whether the log has the result of `call`, and no later run is to replace it. A rejection is a result, too.
    pub fn has_result(&self, call: &Call) -> bool {
        self.find_logged_call(call).is_some_and(has_result)
    }

    /// Returns whether `call` had started, and isn't `read`.
    pub fn had_effect(&self, call: &Call) -> bool {
        self.find_logged_call(call).is_some_and(had_effect)
    }

    /// Returns whether each call that the input requested has its result.
    pub fn is_answered(&self) -> bool {
        self.positions()
            .all(|(_, logged_call)| has_result(logged_call))
    }

    /// Returns whether a call that isn't `read` had started.
    pub fn had_effects(&self) -> bool {
        self.positions().any(|(_, call)| had_effect(call))
    }
}

fn had_effect(logged_call: &LoggedCall) -> bool {
    logged_call.log.attempts() > 0 && logged_call.log.effect() != Some(Effect::Read)
}

fn has_result(logged_call: &LoggedCall) -> bool {
    match logged_call.log.state() {
        LoggedCallState::Ended | LoggedCallState::Done => true,
        LoggedCallState::Requested | LoggedCallState::NotDone => {
            logged_call.last_rejection.is_some()
        }
        LoggedCallState::Started | LoggedCallState::Interrupted | LoggedCallState::InDoubt => false,
    }
}
