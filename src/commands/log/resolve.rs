//! `toolq log resolve`: records what became of a call in doubt, for the next run that asks.

use crate::commands::log::LogResolveArguments;
use crate::commands::log::log_files::find_session;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use crate::settings::LogTarget;
use redact::Mask;
use toolq_core::text::escape;
use toolq_log::memory::{RememberedIn, SettleError};
use toolq_log::settle_call;
use toolq_log::{Access, LogError};

/// Records the finding in the memory of the log, or in the one that all runs without `--log` share.
///
/// # Errors
/// The id matches no call, several calls, or a call that isn't in doubt; or the memory can't be used.
pub fn resolve_call(
    arguments: &LogResolveArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let log_error = |error: LogError| error.for_command(Access::Resolve);
    let state_dir = toolq_log::state_dir(&context.environment);
    let named = arguments.file.as_ref();
    let named = named.map(|file| find_session(file, context));
    let target = LogTarget::new(named, &context.environment);
    let (logs, place) = if let Some(log) = target.path() {
        let place = RememberedIn::of_log(log, state_dir.ok().as_deref());
        (vec![log.to_owned()], place)
    } else {
        let state_dir = state_dir.map_err(log_error)?;
        let sessions = toolq_log::sessions_dir(&context.environment).map_err(log_error)?;
        let logs = toolq_log::list_sessions(&sessions).map_err(log_error)?;
        (logs, RememberedIn::state(&state_dir))
    };
    let settlement = arguments.finding.settlement(&load_mask(context));
    let id = &arguments.id;
    let call =
        settle_call(id, &logs, &place, &settlement).map_err(|error| settle_failure(&error))?;
    let becomes = if settlement.done {
        "has this result now"
    } else {
        "runs when it is asked for again"
    };
    let (tool, log) = (escape(&call.tool), call.log.display());
    let message = format!("{tool} {id} {becomes} ({log})");
    context.stderr.print_note(&message);
    Ok(Exit::Ok)
}

/// Loads the mask for secrets in the result, if there is a tools.yaml that names them.
pub(crate) fn load_mask(context: &CommandContext) -> Mask {
    let tools = context.read_tools_file().ok();
    let tools = tools.and_then(|file| file.loaded.tools);
    tools
        .map(|tools| context.build_mask(&tools))
        .unwrap_or_default()
}

fn settle_failure(error: &SettleError) -> CommandError {
    match error {
        SettleError::Log(error) => error.for_command(Access::Resolve),
        SettleError::Unknown(_, open) if open.is_empty() => {
            CommandError::usage(error).with_hint("no call is in doubt here")
        }
        SettleError::Unknown(_, open) => {
            let open = open.join(", ");
            CommandError::usage(error).with_hint(format!("calls in doubt: {open}"))
        }
        SettleError::Ambiguous(_, choices) => {
            let choices = choices.join(", ");
            CommandError::usage(error).with_hint(format!("name one of them: {choices}"))
        }
        SettleError::Running(_) => {
            CommandError::usage(error).with_hint("wait until that run ends, or says in doubt")
        }
        SettleError::NotInDoubt(_) | SettleError::Settled { .. } => CommandError::usage(error),
    }
}
