//! `toolq log resolve`: records what became of a call in doubt, for the next resume.

use crate::args::LogResolveArguments as Arguments;
use crate::commands::log::log_files::latest_session;
use crate::commands::log::session_id::find_session;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_log::{Access, Resolution, ResolveError};

/// Writes the resolution into the log.
///
/// # Errors
/// The id matches no call, several calls, or a call that isn't in doubt; or the log can't be used.
pub fn resolve_call(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let path = if let Some(path) = &arguments.file {
        find_session(path, context)
    } else {
        latest_session(context, Access::Resolve)?
    };
    let resolution = arguments.finding.resolution();
    let (id, note) = (&arguments.id, arguments.finding.note.as_deref());
    let mask = load_mask(context);
    let resolved = toolq_log::resolve_call(&path, id, &resolution, note, &mask, Clock::system());
    let resolved = resolved.map_err(|error| resolve_failure(&error))?;
    for recovered in &resolved.recovered {
        context.stderr.print_note(&recovered.message(&path));
    }
    let becomes = match resolution {
        Resolution::Done { .. } => "now has this result",
        Resolution::NotDone if resolved.can_resume => "will run on resume",
        Resolution::NotDone => {
            "is marked as not done, but won't run, because another run has started since then"
        }
    };
    let message = format!("{} {id} {becomes} ({})", resolved.tool_name, path.display());
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

fn resolve_failure(error: &ResolveError) -> CommandError {
    match error {
        ResolveError::Log(error) => error.for_command(Access::Resolve),
        ResolveError::UnknownCall(_, open) if open.is_empty() => {
            CommandError::usage(error).with_hint("no call in this log is in doubt")
        }
        ResolveError::UnknownCall(_, open) => {
            let open = open.join(", ");
            CommandError::usage(error).with_hint(format!("calls that can be resolved: {open}"))
        }
        ResolveError::AmbiguousId(_, choices) => {
            let choices = choices.join(", ");
            CommandError::usage(error).with_hint(format!(
                "use the id of the call's record instead: {choices}"
            ))
        }
        ResolveError::NotInDoubt(..) => CommandError::usage(error),
    }
}
