//! Opens the reports of a replay.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::args::ReplayArguments as Arguments;
use crate::context::{CommandContext, ToolsFile};
use crate::output::stdout;
use crate::output::{CommandError, StderrWriter};
use crate::replay::{JsonReport, JunitReport, MarkdownReport, ReplayReport, TerminalReport};
use crate::session::report_file::ReportFile;
use toolq_core::tools_file::YamlContent;

/// Opens the report on the terminal and each one that the arguments name. Existing files are truncated right away, so
/// that an old report can't be mistaken for a new one.
///
/// # Errors
/// A file can't be written, or several reports would go to stdout.
pub fn open_reports(
    arguments: &Arguments,
    context: &CommandContext,
    tools: &ToolsFile,
) -> Result<Vec<Box<dyn ReplayReport>>, CommandError> {
    let wanted = [&arguments.json, &arguments.junit, &arguments.markdown];
    let to_stdout = |path: &&PathBuf| path.as_path() == Path::new("-");
    if wanted.into_iter().flatten().filter(to_stdout).count() > 1 {
        return Err(CommandError::usage("only one report can go to stdout")
            .with_hint("name a file for each of the others"));
    }
    let stderr = Box::new(io::stderr());
    let screen = TerminalReport::new(
        stderr,
        context.stderr.is_colored(),
        StderrWriter::width(),
        !context.stderr.quiet,
    );
    let mut reports: Vec<Box<dyn ReplayReport>> = vec![Box::new(screen)];
    if let Some(path) = &arguments.json {
        reports.push(Box::new(JsonReport::new(open_writer(path)?)));
    }
    if let Some(path) = &arguments.junit {
        let name = tools.path.display().to_string();
        let report = JunitReport::new(name, tool_lines(tools), open_writer(path)?);
        reports.push(Box::new(report));
    }
    if let Some(path) = &arguments.markdown {
        reports.push(Box::new(MarkdownReport::new(open_writer(path)?)));
    }
    Ok(reports)
}

fn open_writer(path: &Path) -> Result<Box<dyn Write>, CommandError> {
    if path == Path::new("-") {
        stdout::check_open()?;
        return Ok(stdout::buffered_writer());
    }
    let file = ReportFile::create(path).map_err(CommandError::usage)?;
    Ok(Box::new(file))
}

/// Maps each tool to the line of tools.yaml on which it starts, counted from 1.
fn tool_lines(file: &ToolsFile) -> HashMap<String, usize> {
    let Some(tree) = &file.loaded.tree else {
        return HashMap::new();
    };
    let YamlContent::Table(entries) = &tree.content else {
        return HashMap::new();
    };
    let tools = entries.iter().find(|entry| entry.key == "tools");
    let Some(YamlContent::Table(tools)) = tools.map(|tools| &tools.value.content) else {
        return HashMap::new();
    };
    let line = |at: usize| {
        let before = file.text.get(..at).unwrap_or_default();
        before.matches('\n').count() + 1
    };
    let lines = tools
        .iter()
        .map(|tool| (tool.key.clone(), line(tool.key_span.start)));
    lines.collect()
}
