//! Compares an input with the logged run that it resumes, before anything runs.

use std::collections::BTreeSet;

use crate::input::CommandInput;
use crate::output::CommandError;
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
        is_frozen: is_frozen(history, request),
        known_calls: 0,
        missing: BTreeSet::new(),
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
        LogSubject::Recordings => None,
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
    /// Nothing may run, because the tools have changed.
    is_frozen: bool,
    /// Number of calls that the log has.
    known_calls: usize,
    /// Names of tools whose calls have to run although nothing may.
    missing: BTreeSet<String>,
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

    /// Compares the calls of a turn. Returns it unless its calls were needed to see which tools are missing.
    fn compare_turn(&mut self, turn: Turn) -> Result<Option<Turn>, CommandError> {
        for call in &turn.calls {
            self.compare_call(call)?;
        }
        if !self.is_frozen {
            return Ok(Some(turn));
        }
        for checked in self.request.checker.check_turn(turn) {
            self.require_tools(&checked);
        }
        Ok(None)
    }

    fn compare_call(&mut self, call: &Call) -> Result<(), CommandError> {
        self.known_calls += usize::from(self.history.check_call(call, self.request.mask)?);
        Ok(())
    }

    fn require_tools(&mut self, checked: &CheckedCall) {
        if self.is_frozen && self.history.needs_current_tools(checked) {
            self.missing.insert(checked.call.name.clone());
        }
    }

    fn finish(self) -> Result<(), CommandError> {
        let Self {
            history, request, ..
        } = self;
        if !self.missing.is_empty() {
            return Err(tools_changed_error(history, request, &self.missing));
        }
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

/// Returns whether nothing may run because tools.yaml or the root directory changed and `--accept-changes` isn't given.
pub(super) fn is_frozen(history: &TaskHistory, request: &LogRequest<'_>) -> bool {
    let changed =
        history.tools_sha256() != request.tools.digest || moved_root(history, request).is_some();
    changed && !history.is_empty() && !request.settings.accept_changes
}

/// Returns the root directory of the logged run if the current one differs. With the same tools.yaml, commands and
/// probes would then see different files.
fn moved_root<'h>(history: &'h TaskHistory, request: &LogRequest<'_>) -> Option<&'h str> {
    let today = request.tools.root.display().to_string();
    history
        .root()
        .filter(|root| *root != request.mask.apply(&today))
}

fn tools_changed_error(
    history: &TaskHistory,
    request: &LogRequest<'_>,
    missing: &BTreeSet<String>,
) -> CommandError {
    if let Some(root) = moved_root(history, request) {
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let (missing, today) = (missing.join(", "), request.tools.root.display());
        return CommandError::usage(format!(
            "this run started in {root}, but the calls that still have to run ({missing}) would run in {today}"
        ))
        .with_hint(format!("`cd {root}` first, or run them here with `--accept-changes`"));
    }
    let path = request.context.tools_path.display();
    let names = |names: &BTreeSet<String>| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.join(", ")
    };
    let changed = history.changed_tools(request.tools);
    let changed = if changed.is_empty() {
        String::new()
    } else {
        format!("; changed: {}", names(&changed))
    };
    let missing = names(missing);
    CommandError::usage(format!(
        "{path} has changed since this run started, and some calls still have to run ({missing}){changed}"
    ))
    .with_hint("`--accept-changes` runs them with the current tools; existing results are kept")
}
