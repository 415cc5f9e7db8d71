//! `toolq check`: reports every problem of tools.yaml with its location and, with `--machine`, what this machine lacks.

mod machine;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;

use crate::args::CheckFormat;
use crate::commands::check::machine::{
    NeedsSurvey, find_machine_warnings, render_text, summarize, survey_needs,
};
use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::{
    CommandError, Exit, PlacedProblem, problems_for_github, problems_json, problems_sarif, stdout,
};
use redact::Mask;
use toolq_core::text::{MAX_NAMED_TOOLS, format_count, list_some};
use toolq_core::tools_file;
use toolq_core::types::{Backing, FileProblem, Severity, Span, Tool, ToolsConfig};

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The file to check, in place of that of `-c`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Also exit 1 if there are only warnings
    #[arg(long)]
    pub strict: bool,
    /// Where to report the problems, and how
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    /// Also report what the tools need and this machine lacks: programs, variables, kernel features, servers
    #[arg(long)]
    pub machine: bool,
    /// With --machine: connect to nothing, so servers, agents and requests aren't asked whether they can be reached
    #[arg(long, requires = "machine")]
    offline: bool,
}

/// Prints the problems and a summary.
///
/// # Errors
/// The file can't be read.
pub fn check_tools_file(
    arguments: &CheckArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    if arguments.machine && matches!(arguments.format, CheckFormat::Github | CheckFormat::Sarif) {
        return Err(
            CommandError::usage("what the machine lacks has no place in a file")
                .with_hint("write `--format text` or `--format json`"),
        );
    }
    let file = match context.read_tools_file() {
        Ok(file) => file,
        Err(error) => {
            // Why it can't be read matters more than that nobody reads the report.
            let _ = print_read_error(arguments.format, &error, context);
            return Err(error);
        }
    };
    let connects = arguments.machine && !arguments.offline;
    let survey = |tools| survey_needs(tools, &context.environment, connects);
    // What a file with errors needs isn't known.
    let needs = file.loaded.tools.as_ref().map(survey);
    // The report for people says the same about each tool.
    let is_reported = arguments.machine && arguments.format == CheckFormat::Text;
    let placed = needs.as_ref().filter(|_| !is_reported);
    let mut problems = find_problems(&file, placed, context);
    let needs = needs.filter(|_| arguments.machine);
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    let warnings = problems.len() - errors;
    if context.stderr.quiet && arguments.format == CheckFormat::Text {
        problems.retain(|problem| problem.severity == Severity::Error);
    }
    match arguments.format {
        CheckFormat::Text => {
            context.print_problems(&file, &problems);
            if let Some(needs) = &needs {
                let color = context.stderr.is_stdout_colored();
                stdout::write_line(&render_text(needs, color, context.stderr.quiet))?;
            }
        }
        format => print_placed(format, &placed_problems(&file, &problems), needs.as_ref())?,
    }
    let summary = summarize_problems(&file, errors, warnings);
    let missing = needs
        .as_ref()
        .map(|needs| format!("; {}", summarize(needs)));
    context
        .stderr
        .print_note(&(summary + &missing.unwrap_or_default()));
    if let Some(note) = file.loaded.tools.as_ref().and_then(undescribed_note) {
        context.stderr.print_note(&note);
    }
    let is_accepted = errors == 0 && (warnings == 0 || !arguments.strict);
    let has_all = needs.is_none_or(|needs| needs.has_all());
    Ok(Exit::problems_if(!is_accepted || !has_all))
}

/// Returns the errors and warnings in the order of their places.
fn find_problems(
    file: &LoadedToolsFile,
    needs: Option<&NeedsSurvey>,
    context: &CommandContext,
) -> Vec<FileProblem> {
    let mut problems = file.loaded.problems.clone();
    if let (Some(tools), Some(tree)) = (&file.loaded.tools, &file.loaded.tree) {
        let environment = context.environment.with_env_file(&tools.env_file);
        problems.extend(tools_file::find_warnings(tools, tree, &environment));
        problems.extend(
            needs
                .into_iter()
                .flat_map(|needs| find_machine_warnings(needs, tree)),
        );
    }
    problems.sort_by_key(|problem| problem.span);
    problems
}

fn placed_problems(file: &LoadedToolsFile, problems: &[FileProblem]) -> Vec<PlacedProblem> {
    let placed = problems.iter().map(|problem| {
        let place = file.loaded.sources.locate(problem.span);
        let path = file.path_of(problem.span).display().to_string();
        let problem = FileProblem {
            span: place.span,
            ..problem.clone()
        };
        PlacedProblem::new(&problem, &path, place.text, &file.mask)
    });
    placed.collect()
}

/// Prints the problems to stdout, for another program, with what the machine lacks, if that was looked for.
fn print_placed(
    format: CheckFormat,
    placed: &[PlacedProblem],
    needs: Option<&NeedsSurvey>,
) -> Result<(), CommandError> {
    let report = match format {
        CheckFormat::Github if placed.is_empty() => return Ok(()),
        CheckFormat::Github => problems_for_github(placed),
        CheckFormat::Sarif => problems_sarif(placed),
        CheckFormat::Text | CheckFormat::Json => {
            let mut report = problems_json(placed);
            if let Some(needs) = needs {
                report["ready"] = needs.has_all().into();
                report["machine"] = json!(needs.machine);
                report["tools"] = json!(needs.tools);
                report["servers"] = json!(needs.servers);
            }
            report.to_string()
        }
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
    let problem = PlacedProblem::new(&problem, path, "", &Mask::default());
    print_placed(format, &[problem], None)
}

/// Names the tools without a description. Those of servers and those that describe themselves have theirs elsewhere.
fn undescribed_note(tools: &ToolsConfig) -> Option<String> {
    let is_described_elsewhere =
        |tool: &Tool| tool.describe.is_some() || matches!(tool.backing, Some(Backing::Mcp(_)));
    let undescribed = (tools.tools.iter())
        .filter(|tool| tool.description.is_empty() && !is_described_elsewhere(tool));
    let names: Vec<&str> = undescribed.map(|tool| tool.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let shown = list_some(names.iter(), MAX_NAMED_TOOLS);
        format!("a model chooses by the `description`, which is missing: {shown}")
    })
}

fn summarize_problems(file: &LoadedToolsFile, errors: usize, warnings: usize) -> String {
    let path = file.path.display();
    let count = |number: usize, word: &str| format_count(number as u64, word);
    let found = match (errors, warnings) {
        (0, 0) => "no problems".to_owned(),
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    match &file.loaded.tools {
        Some(tools) => format!("{path}: {}, {found}", count(tools.tools.len(), "tool")),
        None => format!("{path}: {found}"),
    }
}
