//! `toolq check`: reports every problem of tools.yaml with its location.

use std::path::PathBuf;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::args::{CheckArguments, CheckFormat};
use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::stdout;
use crate::output::{
    CommandError, Exit, PlacedProblem, problems_for_github, problems_json, problems_sarif,
};
use redact::Mask;
use toolq_core::text::format_count;
use toolq_core::tools_file;
use toolq_core::tools_file::SandboxSurroundings;
use toolq_core::types::{FileProblem, Severity, Span};
use toolq_engine::find_sandbox_gaps;
use toolq_mcp::http::ParamHeaders;

/// Prints the problems and a summary.
///
/// # Errors
/// The file can't be read.
pub fn check_tools_file(
    arguments: &CheckArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let file = match context.read_tools_file() {
        Ok(file) => file,
        Err(error) => {
            // Why it can't be read matters more than that nobody reads the report.
            let _ = print_read_error(arguments.format, &error, context);
            return Err(error);
        }
    };
    let mut problems = file.loaded.problems.clone();
    if let (Some(tools), Some(tree)) = (&file.loaded.tools, &file.loaded.tree) {
        problems.extend(tools_file::find_warnings(
            tools,
            (tree, &file.loaded.sources),
            &file.path,
            &context.environment.with_env_file(&tools.env_file),
        ));
        problems.extend(tools_file::find_header_warnings(
            tools,
            tree,
            header_problem,
        ));
        problems.extend(tools_file::find_sandbox_warnings(
            tools,
            tree,
            &SandboxSurroundings {
                gaps: &find_sandbox_gaps,
                logs: log_places(context),
            },
        ));
    }
    problems.sort_by_key(|problem| problem.span);
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    let warnings = problems.len() - errors;
    if context.stderr.quiet && arguments.format == CheckFormat::Text {
        problems.retain(|problem| problem.severity == Severity::Error);
    }
    match arguments.format {
        CheckFormat::Text => context.print_problems(&file, &problems),
        format => print_report(format, &file, &problems)?,
    }
    let tools = file.loaded.tools.as_ref().map(|tools| tools.tools.len());
    context.stderr.print_note(&summarize(
        &file.path.display().to_string(),
        tools,
        errors,
        warnings,
    ));
    Ok(match (errors, warnings) {
        (0, 0) => Exit::Ok,
        (0, _) if !arguments.strict => Exit::Ok,
        _ => Exit::ProblemsFound,
    })
}

/// Prints the problems to stdout, for another program.
fn print_report(
    format: CheckFormat,
    file: &LoadedToolsFile,
    problems: &[FileProblem],
) -> Result<(), CommandError> {
    let placed = problems.iter().map(|problem| {
        let place = file.loaded.sources.locate(problem.span);
        let path = file.path_of(problem.span).display().to_string();
        let problem = FileProblem {
            span: place.span,
            ..problem.clone()
        };
        PlacedProblem::new(&problem, &path, place.text, &file.mask)
    });
    print_placed(format, &placed.collect::<Vec<_>>())
}

fn print_placed(format: CheckFormat, placed: &[PlacedProblem]) -> Result<(), CommandError> {
    let report = match format {
        CheckFormat::Github if placed.is_empty() => return Ok(()),
        CheckFormat::Github => problems_for_github(placed),
        CheckFormat::Sarif => problems_sarif(placed),
        CheckFormat::Text | CheckFormat::Json => problems_json(placed),
    };
    Ok(stdout::write_line(&report)?)
}

/// Prints to stdout, for another program, why the file can't be read. People read it on stderr.
fn print_read_error(
    format: CheckFormat,
    error: &CommandError,
    context: &CommandContext,
) -> Result<(), CommandError> {
    if format == CheckFormat::Text {
        return Ok(());
    }
    let problem = FileProblem {
        hint: error.hint.clone(),
        ..FileProblem::error(Span::default(), error.message.clone(), "")
    };
    let path = context.tools_path.display().to_string();
    let path = if path == "-" { "stdin" } else { &path };
    print_placed(
        format,
        &[PlacedProblem::new(&problem, path, "", &Mask::default())],
    )
}

/// Returns why a tool with this input schema can't be called over HTTP, if so.
fn header_problem(schema: &Value) -> Option<String> {
    let schema = RawValue::from_string(schema.to_string()).ok()?;
    ParamHeaders::from_schema(&schema).err()
}

/// Returns where runs write their session logs, as far as that is known.
fn log_places(context: &CommandContext) -> Vec<PathBuf> {
    let named = context.environment.get_os("TOOLQ_LOG_FILE");
    let default = toolq_log::sessions_dir(&context.environment).ok();
    named
        .map(PathBuf::from)
        .into_iter()
        .chain(default)
        .collect()
}

fn summarize(path: &str, tools: Option<usize>, errors: usize, warnings: usize) -> String {
    let count = |number: usize, word: &str| format_count(number as u64, word);
    let found = match (errors, warnings) {
        (0, 0) => "no problems".to_owned(),
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    match tools {
        Some(tools) => format!("{path}: {}, {found}", count(tools, "tool")),
        None => format!("{path}: {found}"),
    }
}
