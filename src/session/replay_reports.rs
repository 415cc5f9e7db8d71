//! The reports of a replay: where each goes, and what it needs of tools.yaml.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::args::Replay as Arguments;
use crate::context::{Context, ToolsFile};
use crate::output::stdout;
use crate::output::{Failure, Stderr};
use crate::replay::{JsonReport, JunitReport, MarkdownReport, Report, Screen};
use toolq_core::tools_file::Data;

/// Opens every report that the arguments name, and the one for whoever watches. What a file held is gone then: an old
/// report must not be taken for a new one.
///
/// # Errors
/// A file can't be written, or several reports are to go to stdout.
pub fn open(
    arguments: &Arguments,
    context: &Context,
    tools: &ToolsFile,
) -> Result<Vec<Box<dyn Report>>, Failure> {
    let wanted = [&arguments.json, &arguments.junit, &arguments.markdown];
    let to_stdout = |path: &&PathBuf| path.as_path() == Path::new("-");
    if wanted.into_iter().flatten().filter(to_stdout).count() > 1 {
        return Err(Failure::usage("one report at most can go to stdout")
            .with_hint("name a file for each of the others"));
    }
    let stderr = Box::new(io::stderr());
    let screen = Screen::new(stderr, context.stderr.color(), Stderr::width());
    let mut reports: Vec<Box<dyn Report>> = vec![Box::new(screen)];
    if let Some(path) = &arguments.json {
        reports.push(Box::new(JsonReport::new(writer(path)?)));
    }
    if let Some(path) = &arguments.junit {
        let name = tools.path.display().to_string();
        let report = JunitReport::new(name, lines(tools), writer(path)?);
        reports.push(Box::new(report));
    }
    if let Some(path) = &arguments.markdown {
        reports.push(Box::new(MarkdownReport::new(writer(path)?)));
    }
    Ok(reports)
}

fn writer(path: &Path) -> Result<Box<dyn Write>, Failure> {
    if path == Path::new("-") {
        return Ok(stdout::writer());
    }
    let file = File::create(path)
        .map_err(|error| Failure::usage(format!("{} can't be written: {error}", path.display())))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// On which line of tools.yaml each tool begins, counted from 1.
fn lines(file: &ToolsFile) -> HashMap<String, usize> {
    let Some(tree) = &file.loaded.tree else {
        return HashMap::new();
    };
    let Data::Table(entries) = &tree.data else {
        return HashMap::new();
    };
    let tools = entries.iter().find(|entry| entry.key == "tools");
    let Some(Data::Table(tools)) = tools.map(|tools| &tools.value.data) else {
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
