//! `toolq log resolve`: somebody found out what became of a call in doubt, and says so to the next resume.

use crate::args::LogResolve as Arguments;
use crate::commands::log::latest;
use crate::context::Context;
use crate::output::{Exit, Failure};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_log::{Resolution, ResolveError, Wish};

/// Writes it into the log.
///
/// # Errors
/// There is no such call, more than one, or none that is in doubt; or the log can't be used.
pub fn resolve(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let path = if let Some(path) = &arguments.file {
        path.clone()
    } else {
        latest(context, Wish::Resolve)?
    };
    let resolution = match &arguments.result {
        Some(result) => Resolution::Done {
            result: result.clone(),
            is_error: arguments.error,
        },
        None => Resolution::NotDone,
    };
    let (id, note) = (&arguments.id, arguments.note.as_deref());
    let mask = mask(context);
    let resolved = toolq_log::resolve(&path, id, &resolution, note, &mask, Clock::system());
    let resolved = resolved.map_err(|error| failure(&error))?;
    for recovered in &resolved.recovered {
        context.stderr.note(&recovered.words(&path));
    }
    let becomes = match resolution {
        Resolution::Done { .. } => "has this result from now on",
        Resolution::NotDone if resolved.can_resume => "runs when the run is resumed",
        Resolution::NotDone => "did nothing; another run was begun since, so nothing runs it",
    };
    let words = format!("{} {id} {becomes} ({})", resolved.tool, path.display());
    context.stderr.note(&words);
    Ok(Exit::Ok)
}

/// A result may hold what is secret. Which values are, tools.yaml says, if it is there.
fn mask(context: &Context) -> Mask {
    let tools = context.read_tools().ok();
    let tools = tools.and_then(|file| file.loaded.tools);
    tools.map(|tools| context.mask(&tools)).unwrap_or_default()
}

fn failure(error: &ResolveError) -> Failure {
    match error {
        ResolveError::Log(error) => Failure::of_log(error, Wish::Resolve),
        ResolveError::Unknown(_, open) if open.is_empty() => {
            Failure::usage(error).with_hint("no call in it is in doubt")
        }
        ResolveError::Unknown(_, open) => {
            let open = open.join(", ");
            Failure::usage(error).with_hint(format!("what may be resolved in it: {open}"))
        }
        ResolveError::Ambiguous(_, choices) => {
            let choices = choices.join(", ");
            Failure::usage(error).with_hint(format!("name one by the id of its record: {choices}"))
        }
        ResolveError::Settled(..) => Failure::usage(error),
    }
}
