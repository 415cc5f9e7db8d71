//! Compares an input with the logged run that it resumes, before anything runs.

use crate::input::CommandInput;
use crate::output::CommandError;
use crate::session::changed_context::{BlockedCalls, ChangedContext};
use crate::session::log_request::LogRequest;
use crate::session::log_subject::LogSubject;
use toolq_core::transcript::Recording;
use toolq_core::types::{Call, CheckedCall, Turn};
use toolq_log::TaskHistory;

/// Checks the input against the task that it resumes. If the input has a single turn, returns it, so that exactly what
/// was compared will run.
///
/// # Errors
/// The log has another call in the place of one of the input, or calls have to run although the tools have changed.
pub(super) fn compare_with_history(
    history: &TaskHistory,
    request: &LogRequest<'_>,
) -> Result<Option<Turn>, CommandError> {
    let mut comparison = HistoryComparison {
        history,
        request,
        changed: ChangedContext::find(history, request),
        known_calls: 0,
        blocked: BlockedCalls::default(),
    };
    let only_turn = match request.subject {
        LogSubject::Inputs {
            inputs,
            include_answered,
        } => {
            // The number of turns in a stream isn't known yet; its calls are compared as they arrive.
            let Some(recordings) = recordings(inputs) else {
                return Ok(None);
            };
            comparison.compare_recordings(&recordings, include_answered)?
        }
        LogSubject::Call(checked) => {
            comparison.compare_call(&checked.call)?;
            comparison.require_tools(checked);
            None
        }
        LogSubject::Recordings | LogSubject::Host | LogSubject::Client => None,
    };
    comparison.finish()?;
    Ok(only_turn)
}

/// Returns the inputs as recordings, or `None` if one is still arriving.
fn recordings(inputs: &[CommandInput]) -> Option<Vec<&Recording>> {
    let recordings = inputs.iter().map(|input| match input {
        CommandInput::Recording(recording) => Some(&**recording),
        CommandInput::Stream(_) | CommandInput::Follow(_) => None,
    });
    recordings.collect()
}

/// What the comparison has found so far.
struct HistoryComparison<'r> {
    history: &'r TaskHistory,
    request: &'r LogRequest<'r>,
    /// What has changed, so that not all calls may run.
    changed: Option<ChangedContext>,
    /// Number of calls that the log has.
    known_calls: usize,
    /// Calls that have to run, but may not.
    blocked: BlockedCalls,
}

impl HistoryComparison<'_> {
    /// Compares all turns. Returns the turn if there is only one and nothing was dropped from it.
    fn compare_recordings(
        &mut self,
        recordings: &[&Recording],
        include_answered: bool,
    ) -> Result<Option<Turn>, CommandError> {
        let (mut turns, mut last_turn) = (0, None);
        for recording in recordings {
            for index in 0..recording.len() {
                let turn = recording.turn(index, include_answered)?;
                last_turn = self.compare_turn(turn.with_number(turns + index))?;
            }
            turns += recording.len();
        }
        Ok(last_turn.filter(|_| turns == 1))
    }

    /// Compares the calls of a turn. Returns it unless its calls were needed to see which of them are blocked.
    fn compare_turn(&mut self, turn: Turn) -> Result<Option<Turn>, CommandError> {
        for call in &turn.calls {
            self.compare_call(call)?;
        }
        if self.changed.is_none() {
            return Ok(Some(turn));
        }
        for checked in self.request.setup.checker.check_turn(turn) {
            self.require_tools(&checked);
        }
        Ok(None)
    }

    fn compare_call(&mut self, call: &Call) -> Result<(), CommandError> {
        self.known_calls += usize::from(self.history.check_call(call, &self.request.setup.mask)?);
        Ok(())
    }

    fn require_tools(&mut self, checked: &CheckedCall) {
        if let Some(changed) = &self.changed {
            self.blocked.add(changed, checked, self.history);
        }
    }

    fn finish(self) -> Result<(), CommandError> {
        let Self {
            history, request, ..
        } = self;
        self.blocked.require_none(history, request)?;
        let left = history.count_input_calls().saturating_sub(self.known_calls);
        if left > 0 && request.context.verbose {
            let calls = match left {
                1 => "1 call of the log is".to_owned(),
                _ => format!("{left} calls of the log are"),
            };
            let note = format!("{calls} not in this input");
            request.context.stderr.print_note(&note);
        }
        Ok(())
    }
}
