//! `toolq doctor`: reports what the tools need and this machine lacks. Runs no program, and sends nothing but the beginning
//! of connections.

mod addresses;
mod machine;
mod missing;
mod places;
mod programs;
mod report;
mod survey;
mod variables;

use crate::args::{DoctorArguments, DoctorFormat};
use crate::commands::doctor::report::{render_json, render_text, summarize};
use crate::commands::doctor::survey::survey_needs;
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};

/// Prints what is missing, by tool and server.
///
/// # Errors
/// tools.yaml can't be used, for another reason than a missing `env_file`, or stdout can't be written.
pub fn report_missing_requirements(
    arguments: &DoctorArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let file = context.read_tools_file()?;
    // Nothing else is known without it.
    let survey = if let Some(survey) = machine::find_unreadable_env_file(&file) {
        survey
    } else {
        let (tools, _) = context.require_tools(file, "")?;
        survey_needs(&tools, &context.environment, arguments.offline)
    };
    let text = match arguments.format {
        DoctorFormat::Text => render_text(&survey, context.stderr.is_stdout_colored()),
        DoctorFormat::Json => render_json(&survey),
    };
    stdout::write_line(&text)?;
    let path = context.tools_path.display().to_string();
    context.stderr.print_note(&summarize(&survey, &path));
    Ok(if survey.has_all() {
        Exit::Ok
    } else {
        Exit::ProblemsFound
    })
}
