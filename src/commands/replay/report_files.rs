//! Opens the reports of a replay.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::commands::replay::ReplayArguments;
use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::{
    CommandError, StderrStream, StderrWriter, check_output_file, follow_links, stdout,
};
use crate::replay::{
    HtmlReport, JsonReport, JunitReport, MarkdownReport, ReplayReport, TerminalReport,
};
use toolq_core::tools_file::YamlContent;

/// Opens the report on the terminal and each one that the arguments name. Existing files are truncated right away, so
/// that an old report can't be mistaken for a new one.
///
/// # Errors
/// A file can't be written, is a recording, tools.yaml or a session log, or several reports would go to stdout.
pub fn open_reports(
    arguments: &ReplayArguments,
    context: &CommandContext,
    tools: &LoadedToolsFile,
    recordings: &[PathBuf],
) -> Result<Vec<Box<dyn ReplayReport>>, CommandError> {
    let wanted = [
        &arguments.json,
        &arguments.junit,
        &arguments.markdown,
        &arguments.html,
    ];
    let to_stdout = |path: &&PathBuf| path.as_path() == Path::new("-");
    if wanted.into_iter().flatten().filter(to_stdout).count() > 1 {
        return Err(CommandError::usage("only one report can go to stdout")
            .with_hint("name a file for each of the others"));
    }
    let stderr = Box::new(StderrStream);
    check_report_files(&wanted, arguments, tools, recordings)?;
    let screen = TerminalReport::new(
        stderr,
        context.stderr.is_colored(),
        StderrWriter::width(),
        StderrWriter::is_terminal(),
        !context.stderr.quiet,
    );
    let mut reports: Vec<Box<dyn ReplayReport>> = vec![Box::new(screen)];
    if let Some(path) = &arguments.json {
        reports.push(Box::new(JsonReport::new(open_writer(path)?)));
    }
    if let Some(path) = &arguments.junit {
        let report = JunitReport::new(tool_locations(tools), open_writer(path)?);
        reports.push(Box::new(report));
    }
    if let Some(path) = &arguments.markdown {
        reports.push(Box::new(MarkdownReport::new(open_writer(path)?)));
    }
    if let Some(path) = &arguments.html {
        reports.push(Box::new(HtmlReport::new(open_writer(path)?)));
    }
    Ok(reports)
}

/// Checks that each report gets a file of its own, and that nothing else in that file is lost.
fn check_report_files(
    wanted: &[&Option<PathBuf>],
    arguments: &ReplayArguments,
    tools: &LoadedToolsFile,
    recordings: &[PathBuf],
) -> Result<(), CommandError> {
    let mut taken = vec![arguments.log.as_deref().and_then(follow_links)];
    for path in wanted.iter().filter_map(|path| path.as_deref()) {
        let inputs = recordings.iter().map(PathBuf::as_path);
        check_output_file(path, inputs, &tools.files())?;
        let file = follow_links(path);
        // What has no path, and devices, may get several.
        let is_new = file
            .as_ref()
            .is_some_and(|file| !file.exists() || file.is_file());
        if is_new && taken.contains(&file) {
            let error = format!("two outputs would go to {}", path.display());
            return Err(CommandError::usage(error).with_hint("name a file for each of them"));
        }
        taken.push(file);
    }
    Ok(())
}

fn open_writer(path: &Path) -> Result<Box<dyn Write + Send>, CommandError> {
    if path == Path::new("-") {
        stdout::check_open()?;
        return Ok(stdout::buffered_writer());
    }
    let file = ReportFile::create(path).map_err(CommandError::usage)?;
    Ok(Box::new(file))
}

/// Maps each tool to the file and the line on which it starts.
fn tool_locations(file: &LoadedToolsFile) -> HashMap<String, String> {
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
    let tools = tools.iter();
    let locations = tools.map(|tool| (tool.key.clone(), file.place_of(tool.key_span)));
    locations.collect()
}

// A file that a report is written to.

/// Why a report isn't complete.
#[derive(Debug, thiserror::Error)]
#[error("{} can't be written: {cause}", path.display())]
pub(crate) struct ReportFileError {
    path: PathBuf,
    cause: io::Error,
}

/// A file that names itself in its errors, each of which has a [`ReportFileError`] within.
struct ReportFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl ReportFile {
    /// Creates or truncates the file.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path).map_err(|cause| name_error(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
        })
    }
}

impl Write for ReportFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        written.map_err(|cause| name_error(&self.path, cause))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|cause| name_error(&self.path, cause))
    }
}

fn name_error(path: &Path, cause: io::Error) -> io::Error {
    let path = path.to_owned();
    io::Error::new(cause.kind(), ReportFileError { path, cause })
}
