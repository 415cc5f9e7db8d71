//! Renders the records of a log as text: a block per turn with its calls in call order, and an agent's calls below the
//! agent. A call is shown as soon as it and all before it have ended, so that a growing log can be followed.

mod call_records;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::log_view::call_tree::{CallFilter, CallTree, TreeStep};
use crate::log_view::call_view::CallView;
use crate::log_view::session_list::{session_end_label, session_title};
use crate::log_view::table::{OutputPreview, TextLayout};
use crate::terminal::OutcomeTally;
use toolq_core::text::{escape, format_count, format_duration};
use toolq_core::types::Status;
use toolq_log::records::{
    DescribeRecord, LateResultRecord, ListRecord, ServerEndRecord, ServerStartRecord,
    SessionEndRecord, SessionRecord, ToolsChangeRecord,
};
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

/// Renders one log.
#[derive(Debug)]
pub struct LogRenderer {
    writer: CallWriter,
    /// Calls that haven't been shown yet.
    tree: CallTree,
    /// Calls that were shown without a final result. A resumed run may continue them.
    open_calls: HashMap<Uuid, CallView>,
    describes: DescribeTracker,
    /// The record of the last turn of the input, and where it came from.
    input_turn: Option<(Uuid, Option<Arc<str>>)>,
    /// Calls to show at the end of the log, if calls are deferred.
    deferred: Option<DeferredCalls>,
    /// How the calls of the session ended.
    outcomes: OutcomeTally,
}

impl LogRenderer {
    /// Creates a renderer for the calls that `filter` selects.
    pub fn new(layout: TextLayout, filter: CallFilter) -> Self {
        Self {
            writer: CallWriter {
                layout,
                filter,
                pending_title: None,
                heading_turn: None,
            },
            tree: CallTree::default(),
            open_calls: HashMap::new(),
            describes: DescribeTracker::default(),
            input_turn: None,
            deferred: None,
            outcomes: OutcomeTally::default(),
        }
    }

    /// Defers calls until the end of the log, so that each is shown once, in its final state. For logs that aren't
    /// followed.
    #[must_use]
    pub fn deferring_calls(self) -> Self {
        Self {
            deferred: Some(DeferredCalls::default()),
            ..self
        }
    }

    /// Adds the next record; `content` is called if its content is needed. Returns the lines that can be shown now,
    /// each with its newline.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn render_record(
        &mut self,
        record: &Record,
        content: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<String, Corruption> {
        Ok(match &record.kind {
            RecordKind::Session => self.render_session(record)?,
            RecordKind::Turn => self.render_turn(record)?,
            RecordKind::ToolCall => self.render_call(record, &content())?,
            RecordKind::Approval | RecordKind::ToolStart => {
                self.render_event(record, None)?;
                String::new()
            }
            kind if kind.ends_call() => {
                let output = OutputPreview::new(content(), &self.writer.layout);
                self.render_event(record, Some(output))?;
                self.flush(false)
            }
            RecordKind::DescribeStart => {
                self.describes.start(record)?;
                String::new()
            }
            RecordKind::DescribeEnd => {
                let remark = self.describes.end(record)?;
                self.render_remark(&remark)
            }
            RecordKind::ListEnd => self.render_remark(&list_end_label(&record.parse_metadata()?)),
            RecordKind::ServerStart => {
                self.render_remark(&server_start_label(&record.parse_metadata()?))
            }
            RecordKind::ServerEnd => server_end_label(&record.parse_metadata()?)
                .map_or_else(String::new, |remark| self.render_remark(&remark)),
            RecordKind::LateResult => {
                self.render_remark(&late_result_label(&record.parse_metadata()?))
            }
            RecordKind::ToolsChange => {
                self.render_remark(&tools_change_label(&record.parse_metadata()?))
            }
            RecordKind::Recovered => {
                self.flush_all() + &self.render_remark("the torn end of the file was set aside")
            }
            RecordKind::Resolve => self.render_resolve(record, content())?,
            RecordKind::SessionEnd => self.render_session_end(record)?,
            _ => String::new(),
        })
    }

    /// Ends the log. Returns the remaining lines: calls without a result, and deferred calls.
    pub fn finish(&mut self) -> String {
        let mut text = self.flush_all() + &self.render_unanswered();
        let Some(deferred) = self.deferred.take() else {
            return text;
        };
        self.writer.pending_title = None;
        let mut last_title = None;
        for (title, call) in deferred.into_calls() {
            if last_title != title {
                (self.writer.heading_turn, last_title) = (None, title.clone());
                self.writer.pending_title = title;
            }
            self.writer.write_call(&call, &mut text);
        }
        text
    }

    /// Shows all remaining calls, because no further records of them can follow in their session.
    fn flush_all(&mut self) -> String {
        self.flush(true)
    }

    /// Shows the tools whose `describe` program has no recorded end in its session.
    fn render_unanswered(&mut self) -> String {
        let unanswered = self.describes.take_unanswered();
        unanswered.map_or_else(String::new, |remark| self.render_remark(&remark))
    }

    fn render_session(&mut self, record: &Record) -> Result<String, Corruption> {
        let rest = self.flush_all() + &self.render_unanswered();
        let session: SessionRecord = record.parse_metadata()?;
        self.outcomes = OutcomeTally::default();
        let title = session_title(&session, record.timestamp);
        let title = self.writer.layout.wrap(&title, 2);
        let gap = if record.seq > 0 { "\n" } else { "" };
        let title = format!("{gap}{}\n", self.writer.layout.bold(&title));
        self.writer.heading_turn = None;
        if self.writer.filter.matches_all() {
            return Ok(rest + &title);
        }
        self.writer.pending_title = Some(title.into());
        Ok(rest)
    }

    fn render_session_end(&mut self, record: &Record) -> Result<String, Corruption> {
        let rest = self.flush_all() + &self.render_unanswered();
        let end: SessionEndRecord = record.parse_metadata()?;
        let label = session_end_label(&end, &self.outcomes);
        Ok(rest + &self.render_remark(&label))
    }

    /// Formats a line that doesn't belong to a call. It isn't shown if there is a filter.
    fn render_remark(&self, text: &str) -> String {
        if !self.writer.filter.matches_all() {
            return String::new();
        }
        let layout = &self.writer.layout;
        format!("\n{}\n", layout.dim(&layout.wrap(&escape(text), 2)))
    }
}

/// `a result of pay (toolu_1) came too late`.
fn late_result_label(late: &LateResultRecord<'_>) -> String {
    let LateResultRecord {
        tool_use_id,
        tool_name,
        is_error,
    } = late;
    let what = if *is_error { "an error" } else { "a result" };
    let (tool, id) = (escape(tool_name), escape(tool_use_id));
    format!("{what} of {tool} ({id}) came too late and answered nothing")
}

// Prints the selected calls below the headings of their turns.

/// Prints calls that match a filter.
#[derive(Debug)]
struct CallWriter {
    layout: TextLayout,
    filter: CallFilter,
    /// With a filter: the title of the session, to be printed before its first matching call.
    pending_title: Option<Arc<str>>,
    /// The turn of the input whose heading was printed last.
    heading_turn: Option<usize>,
}

impl CallWriter {
    /// Prints a step of the tree. With a filter, each call is printed without its context, but with the names of its
    /// agents.
    fn write_step(&mut self, call: &CallView, step: &TreeStep, text: &mut String) {
        let alone = !self.filter.matches_all();
        match step {
            TreeStep::Close { head_shown: true } if !alone => call.write_end(text, &self.layout),
            TreeStep::Close { .. } => self.write_call(call, text),
            TreeStep::Open | TreeStep::Turn(_) if alone => {}
            TreeStep::Open => {
                self.write_heading(call, text);
                call.write_head(text, &self.layout);
            }
            TreeStep::Turn(turn) => call.write_turn(text, *turn, &self.layout),
        }
    }

    /// Prints a whole call, if it matches the filter.
    fn write_call(&mut self, call: &CallView, text: &mut String) {
        if self.filter.matches_call(&call.name, call.is_error()) {
            text.extend(self.pending_title.take().as_deref());
            self.write_heading(call, text);
            call.write(text, !self.filter.matches_all(), &self.layout);
        }
    }

    fn write_heading(&mut self, call: &CallView, text: &mut String) {
        let turn = call.input_turn;
        if self.heading_turn.replace(turn) != Some(turn) {
            let origin = call.turn_origin.as_deref();
            let origin = origin.map_or_else(String::new, |origin| format!(": {origin}"));
            let heading = self.layout.pad(&format!("turn {turn}{origin}"), 0);
            // Writing to a string can't fail.
            let _ = writeln!(text, "\n{heading}");
        }
    }
}

// Calls whose display waits for the end of the log.

/// Calls that are shown at the end of the log, in the order in which they ended, because until then a later run could
/// continue them or a `resolve` record could settle them. Each has the title of its session.
#[derive(Debug, Default)]
struct DeferredCalls {
    calls: Vec<Option<(Option<Arc<str>>, CallView)>>,
    /// Maps a call's record to its index in `calls`.
    indexes: HashMap<Uuid, usize>,
}

impl DeferredCalls {
    pub(crate) fn add(&mut self, title: Option<Arc<str>>, call: CallView) {
        self.indexes.insert(call.record_id, self.calls.len());
        self.calls.push(Some((title, call)));
    }

    /// Removes a call that a later run continues.
    pub(crate) fn take(&mut self, record: Uuid) -> Option<CallView> {
        let index = self.indexes.remove(&record)?;
        let (_, call) = self.calls.get_mut(index)?.take()?;
        Some(call)
    }

    /// Applies the record that resolves a call.
    pub(crate) fn apply(
        &mut self,
        record: Option<Uuid>,
        event: &CallEvent<'_>,
        output: OutputPreview,
    ) {
        let index = record.and_then(|record| self.indexes.get(&record));
        let entry = index.and_then(|index| self.calls.get_mut(*index));
        if let Some(Some((_, call))) = entry {
            call.apply(event, Some(output));
        }
    }

    /// Returns the remaining calls.
    fn into_calls(self) -> impl Iterator<Item = (Option<Arc<str>>, CallView)> {
        self.calls.into_iter().flatten()
    }
}

// Shows the results of tools' `describe` programs, a line for each.

/// The tools whose `describe` program has started but has no recorded end, in start order.
#[derive(Debug, Default)]
struct DescribeTracker(BTreeMap<u64, (Uuid, String)>);

impl DescribeTracker {
    /// Adds a `describe_start` record.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn start(&mut self, record: &Record) -> Result<(), Corruption> {
        let fields: DescribeRecord<'_> = record.parse_metadata()?;
        self.0
            .insert(record.seq, (record.id, fields.tool_name.into_owned()));
        Ok(())
    }

    /// Adds a `describe_end` record and returns its text.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn end(&mut self, record: &Record) -> Result<String, Corruption> {
        self.0.retain(|_, (start, _)| Some(*start) != record.parent);
        let DescribeRecord {
            tool_name,
            status,
            duration_ms,
            error,
            ..
        } = record.parse_metadata()?;
        let took = format_duration(Duration::from_millis(duration_ms.unwrap_or(0)));
        Ok(match (error, status) {
            (Some(why), _) => {
                format!("{tool_name} could not describe itself ({took}): {why}")
            }
            (None, Some(Status::Ok)) => format!("{tool_name} described itself ({took})"),
            (None, status) => {
                let status =
                    status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
                format!("{tool_name} did not describe itself ({took}): {status}")
            }
        })
    }

    /// Removes the tools without a recorded end and returns a text that names them, if any.
    fn take_unanswered(&mut self) -> Option<String> {
        let pending = std::mem::take(&mut self.0).into_values();
        let names: Vec<String> = pending.map(|(_, name)| name).collect();
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!("describing {names}: no result recorded")
        })
    }
}

// Formats the records of servers, a line for each.

/// Formats a `list_end`: `server notes announced 3 tools (12ms)`.
fn list_end_label(list: &ListRecord<'_>) -> String {
    let server = &list.server;
    let took = format_duration(Duration::from_millis(list.duration_ms.unwrap_or(0)));
    match (&list.error, list.tools) {
        (Some(why), _) => {
            format!("server {server} couldn't be asked for its tools ({took}): {why}")
        }
        (None, Some(tools)) => {
            let tools = format_count(tools as u64, "tool");
            format!("server {server} announced {tools} ({took})")
        }
        (None, None) => format!("server {server} didn't announce its tools ({took})"),
    }
}

/// Formats a `server_start`: `server notes was ready after 12ms: notes 1.0, 2025-11-25 (legacy)`.
fn server_start_label(start: &ServerStartRecord<'_>) -> String {
    let server = &start.server;
    let again = if start.earlier_starts > 0 {
        " again"
    } else {
        ""
    };
    let Some(ready_ms) = start.ready_ms else {
        return format!("server {server} was started{again}");
    };
    let ready = format_duration(Duration::from_millis(ready_ms));
    let program = [&start.name, &start.version].map(|part| part.as_deref().unwrap_or_default());
    let program = program.join(" ");
    let protocol = start.protocol.as_deref().unwrap_or("unknown protocol");
    let era = start.era.as_deref().unwrap_or("unknown era");
    let who = [program.trim(), protocol].map(str::to_owned);
    let who: Vec<String> = who.into_iter().filter(|part| !part.is_empty()).collect();
    format!(
        "server {server} was ready{again} after {ready}: {} ({era})",
        who.join(", ")
    )
}

/// Formats a `server_end`: `server notes exited with code 3 after 2s and 4 calls`. `None` if the run needed it no more, and
/// there is nothing else to tell.
fn server_end_label(end: &ServerEndRecord<'_>) -> Option<String> {
    let strays = [
        (end.unexpected_answers, "unexpected answer"),
        (end.noise_lines, "noise line"),
    ];
    let strays = strays.into_iter().filter(|(count, _)| *count > 0);
    let strays: Vec<String> = strays
        .map(|(count, noun)| format_count(count, noun))
        .collect();
    if end.cause == "run_ended" && strays.is_empty() {
        return None;
    }
    let took = format_duration(Duration::from_millis(end.duration_ms));
    let calls = format_count(end.calls, "call");
    let mut text = format!("server {} ended after {took} and {calls}", end.server);
    if !strays.is_empty() {
        let _ = write!(text, ", with {}", strays.join(" and "));
    }
    if let Some(error) = &end.error {
        let _ = write!(text, ": {error}");
    }
    Some(text)
}

// Formats the records of tools files that were read again.

/// Formats a `tools_change`: `tools.yaml was read again`.
fn tools_change_label(change: &ToolsChangeRecord) -> String {
    format!("{} was read again", change.tools.path)
}
