//! Prints one log, and with `-f`, what is added to it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::args::log::LogShowArguments as Arguments;
use crate::args::values::LogFormat;
use crate::commands::log::log_files::{
    MAX_INLINE_BODY_BYTES, load_content, open_log, unreadable_log, warn_torn,
};
use crate::context::CommandContext;
use crate::log_view::{CallFilter, LogRenderer, TextLayout, ToolNameFilter, doubt_notices};
use crate::output::{CommandError, Exit, stdout};
use toolq_core::os::ProcessIdentity;
use toolq_log::records::SessionRecord;
use toolq_log::{Corruption, LogError, Record, RecordKind, RecordReader};

/// Width of the output if stdout isn't a terminal, in columns.
const FALLBACK_WIDTH: usize = 100;

/// Time between two checks of a growing log.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Prints a log to stdout.
pub(crate) struct LogPrinter<'a> {
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
        arguments: &Arguments,
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
        let show = LogRenderer::new(layout, filter.clone());
        let defers_output = arguments.errors && !arguments.follow;
        Ok(Self {
            path,
            canonical_path: fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            records: open_log(path)?,
            identity: file_identity(path),
            format: arguments.format,
            is_whole: arguments.full,
            show: if defers_output {
                show.deferring_calls()
            } else {
                show
            },
            filter,
            follow: arguments.follow,
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
    pub(crate) fn print_log(mut self) -> Result<(), CommandError> {
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
            "killed: no end in the log; run its input again".to_owned()
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
    fn print_text(&self, text: &str) -> Result<(), CommandError> {
        let Some(lines) = text.strip_suffix('\n') else {
            return Ok(());
        };
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
