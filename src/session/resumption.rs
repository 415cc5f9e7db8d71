//! Decides which run `--resume` continues: the one with the same input, the last one, or no run at all.

use crate::output::CommandError;
use crate::session::log_request::LogRequest;
use toolq_core::types::Call;
use toolq_log::{CallConflict, PreparedLog, TaskHistory};

/// How the calls of the input that are known before the run compare with those of a logged run.
#[derive(Default)]
struct Overlap {
    /// Number of calls that the log has.
    common: usize,
    /// Number of these that have another id now.
    renamed: usize,
    /// The first difference of a call from the call that the log has in its place.
    conflict: Option<CallConflict>,
    /// Whether a call with the same id may have done something when it ran.
    repeats_effects: bool,
}

/// Chooses the run to continue. If there is no such run, `log` begins a new one.
///
/// # Errors
/// The last run is unfinished and had another input, or it can't be compared with this one, or this one repeats only a part
/// of what may have had effects.
pub(super) fn choose_run(
    log: &mut PreparedLog,
    request: &LogRequest<'_>,
) -> Result<(), CommandError> {
    let path = log.path().display().to_string();
    let stderr = &request.context.stderr;
    if log.history().task_id().is_none() {
        if request.settings.target.path().is_some() {
            stderr.print_note(&format!(
                "{path} has no session to resume; starting a new one"
            ));
        }
        return Ok(());
    }
    let is_unfinished = log.check_finished().is_err();
    if log.is_history_partial() {
        let is_other_input = request.subject.digest().is_some() && !log.has_same_input();
        if is_unfinished || !is_other_input {
            return Err(other_input_error(&path));
        }
    } else if log.has_same_input() {
        return Ok(());
    }
    let overlap = Overlap::new(log.history(), request)?;
    if is_unfinished {
        return overlap.check_unfinished(log.history(), request, &path);
    }
    let is_known = request.subject.knows_calls();
    if is_known && (log.is_history_partial() || !overlap.is_continued()) {
        // A new run would repeat such a call, although the input only continues what the log has.
        if overlap.repeats_effects {
            let renamed = || changed_ids_error(&path);
            return Err(overlap.conflict.map_or_else(renamed, CommandError::from));
        }
        stderr.print_note(&format!(
            "{path} has no run of this input to resume; starting a new one"
        ));
        log.begin_new_task();
    }
    Ok(())
}

impl Overlap {
    fn new(history: &TaskHistory, request: &LogRequest<'_>) -> Result<Self, CommandError> {
        let mut overlap = Self::default();
        request.subject.for_each_known_call(|call: &Call| {
            match history.check_call(call, &request.setup.mask) {
                Ok(true) => {
                    let has_same_id = history.has_same_id(call, &request.setup.mask);
                    overlap.common += 1;
                    overlap.renamed += usize::from(!has_same_id);
                    overlap.repeats_effects |= has_same_id && history.had_effect(call);
                }
                Ok(false) => {}
                Err(conflict) => drop(overlap.conflict.get_or_insert(conflict)),
            }
        })?;
        Ok(overlap)
    }

    /// Whether the input continues a run that has ended: its calls are the same, down to their ids.
    fn is_continued(&self) -> bool {
        self.common > 0 && self.renamed == 0 && self.conflict.is_none()
    }

    /// Returns an error if the input has nothing in common with a run that was killed. A call that differs is reported by
    /// the comparison call by call, which names it.
    fn check_unfinished(
        &self,
        history: &TaskHistory,
        request: &LogRequest<'_>,
        path: &str,
    ) -> Result<(), CommandError> {
        let has_calls = history.count_input_calls() > 0 && request.subject.knows_calls();
        if has_calls && self.common == 0 && self.conflict.is_none() {
            return Err(other_input_error(path));
        }
        Ok(())
    }
}

fn changed_ids_error(path: &str) -> CommandError {
    let message = format!(
        "the input has calls that already ran in {path}, beside others that are the same but have new ids, so it isn't clear which run it \
         continues; nothing ran"
    );
    CommandError::usage(message)
        .with_hint("resume with the input of that run, or run all of these calls with `--new`")
}

fn other_input_error(path: &str) -> CommandError {
    let message = format!("the last run in the session log {path} had another input");
    CommandError::usage(message).with_hint(
        "resume with the input of that run, or start another run in this log with `--new`",
    )
}
