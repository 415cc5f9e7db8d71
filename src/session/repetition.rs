//! Decides whether a new run would repeat an earlier one. What the log has a result for doesn't run again, unless only
//! calls that are `read` had run.

use std::path::Path;

use crate::log_view::resolve_command;
use crate::output::{CommandError, Exit};
use crate::session::log_request::LogRequest;
use crate::session::log_subject::LogSubject;
use crate::settings::LogTarget;
use toolq_core::text::escape;
use toolq_core::types::Call;
use toolq_log::{
    Access, InDoubtCall, InDoubtCalls, PreparedLog, SessionHeader, find_unsettled_session,
};

/// Checks that a run which `--new` asks for doesn't apply a plan for a second time.
///
/// # Errors
/// It does.
pub(super) fn check_plan_is_new(
    log: &PreparedLog,
    request: &LogRequest<'_>,
) -> Result<(), CommandError> {
    let Some(plan) = request.plan.filter(|_| log.has_applied_plan()) else {
        return Ok(());
    };
    let (id, path) = (plan.id(), log.path().display());
    Err(CommandError::usage(format!(
        "the plan {id} was already applied, says {path}, and a plan is applied once; nothing ran"
    ))
    .with_hint(
        "without `--new`, the results come from the log; to run the calls again, make a new plan",
    ))
}

/// Returns whether the log has the result of each call of the input, so that the results are printed from there and
/// nothing runs. A plan that wasn't applied yet is a new yes for all of its calls: it runs.
///
/// # Errors
/// The last run is unfinished, or the last one with this input has calls without a result.
pub(super) fn is_answered_by(
    log: &PreparedLog,
    request: &LogRequest<'_>,
) -> Result<bool, CommandError> {
    let history = log.history();
    let has_result = |call: &Call| {
        matches!(history.check_call(call, &request.setup.mask), Ok(true))
            && history.has_result(call)
    };
    let is_answered = log.has_same_input()
        && !log.is_history_partial()
        && history.is_answered()
        && all_calls(request.subject, has_result)?;
    // A plan is applied once, even if its calls only read.
    let would_repeat = match request.plan {
        Some(_) => log.has_applied_plan(),
        None => history.had_effects(),
    };
    if is_answered && would_repeat {
        return Ok(true);
    }
    let finished = log.check_finished();
    finished.map_err(|error| error.for_command(request.access()))?;
    if log.has_same_input() && !is_answered {
        let path = log.path().display();
        let message = format!(
            "the session log {path} has a run of this input that left calls without a result"
        );
        return Err(CommandError::new(Exit::Log, message)
            .with_hint("`--resume` runs what is missing; `--new` runs everything again"));
    }
    Ok(false)
}

/// Refuses to begin a run with a call that an earlier run in the log left in doubt.
///
/// # Errors
/// The input has such a call: it would be repeated.
pub(super) fn check_no_doubt_is_repeated(
    log: &PreparedLog,
    request: &LogRequest<'_>,
) -> Result<(), CommandError> {
    let Some(in_doubt) = log.in_doubt_calls() else {
        return Ok(());
    };
    let mut repeated = None;
    request.subject.for_each_known_call(|call: &Call| {
        repeated = repeated.or_else(|| in_doubt.find_repeated(call, &request.setup.mask));
    })?;
    let Some(call) = repeated else { return Ok(()) };
    Err(repeated_doubt_error(in_doubt, call, log.path()))
}

fn repeated_doubt_error(in_doubt: &InDoubtCalls, call: &InDoubtCall, log: &Path) -> CommandError {
    let (id, path) = (in_doubt.resolve_id(call), log.display());
    let message = format!(
        "an earlier run in the session log {path} left {id} ({}) in doubt, and this run would repeat it",
        escape(&call.tool_name)
    );
    let resolve = resolve_command(&id, log);
    CommandError::new(Exit::Log, message).with_hint(format!(
        "settle it with `{resolve}`, adding `--done --result TEXT` or `--not-done`; `--new` runs it again"
    ))
}

/// Refuses to run an input again whose latest session in the default directory was killed or left calls in doubt.
///
/// # Errors
/// A call that isn't `read` had started or is in doubt, or the directory can't be read.
pub(super) fn check_unsettled_session(
    request: &LogRequest<'_>,
    header: &SessionHeader,
) -> Result<(), CommandError> {
    if request.settings.target != LogTarget::DefaultDirectory {
        return Ok(());
    }
    let directory = toolq_log::sessions_dir(&request.context.environment)?;
    let unsettled = find_unsettled_session(&directory, header, &request.setup.mask)
        .map_err(|error| error.for_command(Access::Resume))?;
    let Some(unsettled) = unsettled else {
        return Ok(());
    };
    let path = unsettled.path.display();
    if !unsettled.was_killed {
        let first = unsettled.in_doubt.in_log_order().into_iter().next();
        return first.map_or(Ok(()), |first| {
            Err(repeated_doubt_error(
                &unsettled.in_doubt,
                first,
                &unsettled.path,
            ))
        });
    }
    if !unsettled.had_effects {
        let note = format!("an earlier run of this input was killed, but had only read ({path})");
        request.context.stderr.print_note(&note);
        return Ok(());
    }
    let message = format!(
        "an earlier run of this input was killed after calls had started that may have side effects ({path})"
    );
    Err(CommandError::new(Exit::Log, message)
        .with_hint("`--resume` finishes it; `--new` runs everything again"))
}

/// Returns whether `predicate` holds for all calls that are known before the run. Those of a stream aren't.
fn all_calls(
    subject: LogSubject<'_>,
    predicate: impl Fn(&Call) -> bool,
) -> Result<bool, CommandError> {
    let mut holds = true;
    subject.for_each_known_call(|call| holds &= predicate(call))?;
    Ok(holds)
}
