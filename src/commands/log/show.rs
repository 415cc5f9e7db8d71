//! `toolq log show`: prints calls and their results for people, or the records verbatim. `-f` follows a growing log.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::args::LogFormat;
use crate::commands::log::LogShowArguments;
use crate::commands::log::log_files::{
    MAX_INLINE_BODY_BYTES, load_content, open_log, select_logs, unreadable_log, warn_torn,
};
use crate::context::CommandContext;
use crate::log_view::{
    CallFilter, KILLED, LogRenderer, TextLayout, ToolNameFilter, WholeCallRenderer, doubt_notices,
    settlement_lines,
};
use crate::output::{CommandError, Exit, stdout};
use toolq_core::os::ProcessIdentity;
use toolq_core::text::{escape, quote_path_for_shell};
use toolq_log::records::SessionRecord;
use toolq_log::{Corruption, LogError, Record, RecordKind, RecordReader};

/// Prints the logs, one after another.
///
/// # Errors
/// A log can't be read, or stdout can't be written. The records before any corruption are printed.
pub fn show_logs(
    arguments: &LogShowArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let paths = select_logs(&arguments.logs, context)?;
    if arguments.follow && paths.len() > 1 {
        return Err(
            CommandError::usage("only one log can be followed at a time")
                .with_hint("name one of them, or leave out `-f`"),
        );
    }
    if arguments.follow && paths.iter().any(|path| path == Path::new("-")) {
        return Err(CommandError::usage("stdin can't be followed")
            .with_hint("name the log: `toolq log show -f FILE`"));
    }
    if let Some(id) = &arguments.id {
        return show_call(id, &paths, arguments.format, context);
    }
    let mut name_filter = ToolNameFilter::new(&arguments.tool);
    for (number, path) in paths.iter().enumerate() {
        // A path that wasn't typed isn't known yet.
        let is_named = paths.len() > 1 || !arguments.logs.files.contains(path);
        if is_named && arguments.format == LogFormat::Text {
            let gap = if number > 0 { "\n" } else { "" };
            let name = path.display().to_string();
            stdout::write_line(&format!("{gap}{}:", escape(&name)))?;
        }
        LogPrinter::new(path, arguments, context, &mut name_filter)?.print_log()?;
    }
    warn_missing_tools(&name_filter, &paths, context);
    Ok(Exit::Ok)
}

/// Warns about named tools without calls.
fn warn_missing_tools(name_filter: &ToolNameFilter, paths: &[PathBuf], context: &CommandContext) {
    let place = match paths {
        [path] => path.display().to_string(),
        _ => "these logs".to_owned(),
    };
    for (name, near) in name_filter.missing() {
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let warning = format!("no calls of {name} in {place}{near}");
        context.stderr.print_warning(&warning);
    }
}

// `toolq log show --id`: all that a log has of one call.

/// Prints the records of the call with this id, for people or verbatim.
///
/// # Errors
/// A log can't be read, no log has such a call, or stdout can't be written.
fn show_call(
    id: &str,
    paths: &[PathBuf],
    format: LogFormat,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut is_known = false;
    for path in paths {
        is_known |= show_in_log(id, path, format, context)?;
    }
    if is_known {
        return Ok(Exit::Ok);
    }
    let place = match paths {
        [path] => path.display().to_string(),
        _ => "these logs".to_owned(),
    };
    let log = match paths {
        [path] => quote_path_for_shell(path),
        _ => "LOG".to_owned(),
    };
    let hint =
        format!("`toolq log show {log}` shows its calls; `toolq log list` lists other sessions");
    Err(CommandError::usage(format!("no call {id} in {place}")).with_hint(hint))
}

/// Returns whether the log has the call.
fn show_in_log(
    id: &str,
    path: &Path,
    format: LogFormat,
    context: &CommandContext,
) -> Result<bool, CommandError> {
    // Stored content is next to the log itself, not to a symlink.
    let canonical_path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut call = WholeCallRenderer::new(id);
    let mut records = open_log(path)?;
    let mut is_known = false;
    while let Some(record) = records.next() {
        let rendered = record.and_then(|record| {
            let mut content = || load_content(&record.content, &canonical_path, u64::MAX);
            call.render_record(&record, &mut content)
        });
        match rendered {
            Ok(None) => {}
            Ok(Some(_)) if format == LogFormat::Json => {
                stdout::write_line(records.last_line())?;
                is_known = true;
            }
            Ok(Some(text)) => {
                if !is_known {
                    stdout::write_line(&format!("{}:", escape(&path.display().to_string())))?;
                }
                is_known = true;
                stdout::write_line(&text)?;
            }
            Err(damage) if damage.is_torn_end() => warn_torn(path, &damage, context),
            Err(damage) => return Err(unreadable_log(&LogError::from_corruption(path, damage))),
        }
    }
    if is_known && format == LogFormat::Text {
        for line in settlement_lines(path, context, |call| call.tool_use_id == id) {
            stdout::write_line(&format!("  {line}"))?;
        }
    }
    Ok(is_known)
}

// Prints one log, and with `-f`, what is added to it.

/// Width of the output if stdout isn't a terminal, in columns.
const FALLBACK_WIDTH: usize = 100;

/// Time between two checks of a growing log.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Prints a log to stdout.
struct LogPrinter<'a> {
    path: &'a Path,
    /// The path with symlinks resolved, because stored content is next to the log itself.
    canonical_path: PathBuf,
    records: RecordReader,
    /// Device and inode number of the opened file.
    identity: Option<(u64, u64)>,
    format: LogFormat,
    /// Whether inputs and results are shown whole.
    is_whole: bool,
    filter: CallFilter,
    show: LogRenderer,
    follow: bool,
    /// How many texts it has printed.
    printed: usize,
    has_ended: bool,
    /// The process that writes the last session.
    writer: Option<ProcessIdentity>,
    name_filter: &'a mut ToolNameFilter,
    context: &'a CommandContext,
}

impl<'a> LogPrinter<'a> {
    /// Opens the log at `path`.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn new(
        path: &'a PathBuf,
        arguments: &LogShowArguments,
        context: &'a CommandContext,
        name_filter: &'a mut ToolNameFilter,
    ) -> Result<Self, CommandError> {
        let terminal_width = stdout::width();
        let layout = TextLayout {
            width: terminal_width.unwrap_or(FALLBACK_WIDTH),
            terminal_width,
            color: context.stderr.is_stdout_colored(),
            is_whole: arguments.full,
        };
        let filter = CallFilter {
            errors_only: arguments.errors,
            tools: arguments.tool.clone(),
        };
        Ok(Self {
            path,
            canonical_path: fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            records: open_log(path)?,
            identity: file_identity(path),
            format: arguments.format,
            is_whole: arguments.full,
            show: LogRenderer::new(layout, filter.clone()),
            filter,
            follow: arguments.follow,
            printed: 0,
            has_ended: false,
            writer: None,
            name_filter,
            context,
        })
    }

    /// Prints the log to its end, or, if it is followed, until its session ends.
    ///
    /// # Errors
    /// It can't be read, or stdout can't be written. The records before any corruption are printed.
    fn print_log(mut self) -> Result<(), CommandError> {
        self.print_available()?;
        while self.follow && !self.has_ended {
            // Read once more after the writer is gone, for its last records.
            self.follow = !self.is_abandoned();
            if self.follow {
                sleep(POLL_INTERVAL);
            }
            self.check_identity()?;
            self.records.continue_reading();
            self.print_available()?;
            if !self.follow && !self.has_ended {
                self.warn_abandoned();
            }
        }
        let rest = self.show.finish();
        self.print_text(&rest)?;
        if self.format != LogFormat::Text {
            return Ok(());
        }
        // What isn't on a terminal isn't broken.
        let columns = stdout::width().unwrap_or(usize::MAX);
        if self.filter.matches_all() {
            // What can't be read was reported above.
            for notice in doubt_notices(self.path, self.context).unwrap_or_default() {
                self.print_text(&format!("\n{}\n", notice.lines(columns)))?;
            }
            for line in settlement_lines(self.path, self.context, |_| true) {
                self.print_text(&format!("\n{line}\n"))?;
            }
        } else if self.filter.errors_only && self.printed == 0 {
            let (of, path) = (self.filter.tools.join(", "), self.path.display());
            let of = if of.is_empty() {
                of
            } else {
                format!(" of {of}")
            };
            let note = format!("no call{of} in {path} is an error");
            self.context.stderr.print_note(&note);
        }
        match self.unfinished_label() {
            Some(label) => self.print_text(&format!("\n{label}\n")),
            None => Ok(()),
        }
    }

    /// Returns a label for a last session without an end, which says what to do about it. A command is on a line of its own,
    /// so that it can be copied.
    fn unfinished_label(&self) -> Option<String> {
        let writer = self.writer.as_ref().filter(|_| !self.has_ended)?;
        Some(if self.records.has_writer() || !writer.has_exited() {
            format!("no end yet: process {} is still running", writer.pid)
        } else {
            KILLED.to_owned()
        })
    }

    /// Returns whether no process that could write the end of the session is left.
    fn is_abandoned(&self) -> bool {
        let writer = self.writer.as_ref();
        writer.is_some_and(ProcessIdentity::has_exited) && !self.records.has_writer()
    }

    fn warn_abandoned(&self) {
        let pid = self.writer.as_ref().map_or(0, |writer| writer.pid);
        let path = self.path.display();
        self.context.stderr.print_warning(&format!(
            "stopped following {path}: its process {pid} is gone and did not end the session"
        ));
    }

    /// Prints the records up to the current end of the file.
    fn print_available(&mut self) -> Result<(), CommandError> {
        while let Some(record) = self.records.next() {
            let result = record.and_then(|record| {
                self.track_record(&record)?;
                self.render_record(&record)
            });
            match result {
                Ok(text) => self.print_text(&text)?,
                // The rest of the record may still be written.
                Err(damage) if damage.is_torn_end() && self.follow => {}
                Err(damage) if damage.is_torn_end() => warn_torn(self.path, &damage, self.context),
                Err(damage) => {
                    let rest = self.show.finish();
                    self.print_text(&rest)?;
                    return Err(unreadable_log(&LogError::from_corruption(
                        self.path, damage,
                    )));
                }
            }
        }
        Ok(())
    }

    /// Tracks the writing process, the end of the session, and the names of tools.
    fn track_record(&mut self, record: &Record) -> Result<(), Corruption> {
        self.name_filter.add_record(record)?;
        match record.kind {
            RecordKind::Session => {
                self.has_ended = false;
                let session: SessionRecord = record.parse_metadata()?;
                self.writer = Some(session.process());
            }
            RecordKind::SessionEnd => self.has_ended = true,
            _ => {}
        }
        Ok(())
    }

    /// Returns the text to print for a record, with its newline, or an empty text.
    fn render_record(&mut self, record: &Record) -> Result<String, Corruption> {
        let max_bytes = if self.is_whole {
            u64::MAX
        } else {
            MAX_INLINE_BODY_BYTES
        };
        let mut content = || load_content(&record.content, &self.canonical_path, max_bytes);
        if self.format == LogFormat::Text {
            return self.show.render_record(record, &mut content);
        }
        let named = match record.kind {
            RecordKind::ToolCall if !self.filter.matches_all() => content().ok(),
            _ => None,
        };
        let keeps = self.filter.matches_record(record, named.as_deref())?;
        Ok(if keeps {
            format!("{}\n", self.records.last_line())
        } else {
            String::new()
        })
    }

    /// Prints lines. What is shown whole, or as JSON, stays as it is.
    fn print_text(&mut self, text: &str) -> Result<(), CommandError> {
        let Some(lines) = text.strip_suffix('\n') else {
            return Ok(());
        };
        self.printed += 1;
        let keeps_symbols = self.is_whole || self.format != LogFormat::Text;
        if keeps_symbols {
            return Ok(stdout::write_line(lines)?);
        }
        let lines = self.context.stderr.own_symbols(lines.to_owned());
        Ok(stdout::write_line(&lines)?)
    }

    /// Returns an error if the log being followed was removed, replaced, or truncated.
    fn check_identity(&self) -> Result<(), CommandError> {
        let is_same = file_identity(self.path) == self.identity;
        let len = fs::metadata(self.path).map_or(0, |metadata| metadata.len());
        if is_same && len >= self.records.offset() {
            return Ok(());
        }
        let path = self.path.display();
        Err(CommandError::new(
            Exit::Log,
            format!("the session log {path} was removed, replaced, or truncated while being read"),
        )
        .with_hint("start over with `toolq log show`"))
    }
}

fn file_identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
