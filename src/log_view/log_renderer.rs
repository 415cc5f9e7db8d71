//! Renders the records of a log as text: a block per turn with its calls in call order, and an agent's calls below the
//! agent. A call is shown as soon as it and all before it have ended, so that a growing log can be followed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::log_view::call_tree::{CallFilter, CallTree, TreeStep};
use crate::log_view::call_view::{CallView, resolution_note};
use crate::log_view::session_list::{session_end_label, session_title, turn_origin_label};
use crate::log_view::table::{self, OutputPreview, TextLayout};
use crate::terminal::OutcomeTally;
use toolq_core::text::{escape, format_count, format_duration};
use toolq_core::types::Status;
use toolq_log::records::{
    DescribeRecord, ListRecord, ResolveRecord, ServerEndRecord, ServerStartRecord,
    SessionEndRecord, SessionRecord, ToolsChangeRecord, TurnRecord,
};
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

/// Renders one log.
#[derive(Debug)]
pub struct LogRenderer {
    writer: CallWriter,
    /// Calls that haven't been shown yet.
    tree: CallTree,
    describes: DescribeTracker,
    /// The record of the last turn of the input, and where it came from.
    input_turn: Option<(Uuid, Option<Arc<str>>)>,
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
            describes: DescribeTracker::default(),
            input_turn: None,
            outcomes: OutcomeTally::default(),
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
            RecordKind::ToolResult | RecordKind::ToolSkipped | RecordKind::ToolInDoubt => {
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
            RecordKind::ToolsChange => {
                self.render_remark(&tools_change_label(&record.parse_metadata()?))
            }
            RecordKind::Recovered => {
                self.flush_all() + &self.render_remark("the torn end of the file was set aside")
            }
            RecordKind::Resolve => self.render_resolve(record, content())?,
            RecordKind::SessionEnd => self.render_session_end(record)?,
            RecordKind::ModelResponse
            | RecordKind::ProbeStart
            | RecordKind::ProbeEnd
            | RecordKind::ListStart
            | RecordKind::Other(_) => String::new(),
        })
    }

    /// Ends the log. Returns the remaining lines: calls without a result.
    pub fn finish(&mut self) -> String {
        self.flush_all() + &self.render_unanswered()
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

// Adds the records of calls to the tree, and shows the calls that have ended, in call order.

impl LogRenderer {
    /// Renders a turn. One of an agent is added to the agent's call. The calls of earlier turns may still be running: a
    /// server runs turns at the same time.
    pub(super) fn render_turn(&mut self, record: &Record) -> Result<String, Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        let Some(call) = record.parent.filter(|_| turn.agent.is_some()) else {
            self.input_turn = Some((record.id, turn_origin_label(&turn)));
            return Ok(self.flush(false));
        };
        self.tree.add_agent_turn(record.id, call);
        Ok(String::new())
    }

    pub(super) fn render_call(
        &mut self,
        record: &Record,
        content: &Result<String, String>,
    ) -> Result<String, Corruption> {
        let agent = self.tree.agent_call_of(record.parent);
        let parent = self.tree.parent_view(agent);
        let mut call = CallView::new(record, parent, content, &self.writer.layout)?;
        if let Some((turn, origin)) = &self.input_turn
            && Some(*turn) == record.parent
        {
            call.turn_origin.clone_from(origin);
        }
        self.tree.add_call(call);
        Ok(self.flush(false))
    }

    /// Adds a record of a call to the tree.
    pub(super) fn render_event(
        &mut self,
        record: &Record,
        output: Option<OutputPreview>,
    ) -> Result<(), Corruption> {
        if let Some(event) = CallEvent::from_record(record)? {
            if let Some(end) = event.end() {
                self.outcomes.add(event.outcome_kind(), end.status.clone());
            }
            self.tree.apply(record.parent, &event, output);
        }
        Ok(())
    }

    pub(super) fn render_resolve(
        &mut self,
        record: &Record,
        content: Result<String, String>,
    ) -> Result<String, Corruption> {
        let rest = self.flush_all();
        let event = CallEvent::from_record(record)?;
        let Some(event @ CallEvent::Resolved(resolved)) = &event else {
            return Ok(rest);
        };
        if !self
            .writer
            .filter
            .matches_call(&resolved.tool_name, event.is_error())
        {
            return Ok(rest);
        }
        let line = resolution_label(resolved, content, &self.writer.layout);
        Ok(rest + &format!("\n{}\n", self.writer.layout.dim(&line)))
    }

    /// Shows calls from the front that have ended, or all calls.
    pub(super) fn flush(&mut self, all: bool) -> String {
        let mut text = String::new();
        self.tree.flush(all, &mut |call, step| {
            self.writer.write_step(call, &step, &mut text);
        });
        text
    }
}

// The line of a call in doubt that a person resolved.

/// Formats the line: `resolved pay call_1: done: paid (checked by hand)`. `content` is the result that the person gave,
/// or why it can't be read.
fn resolution_label(
    resolved: &ResolveRecord<'_>,
    content: Result<String, String>,
    layout: &TextLayout,
) -> String {
    let found = match (resolved.done, content) {
        (true, Ok(result)) => format!("done: {}", table::content_preview(&result, layout)),
        (true, Err(reason)) => format!("done ({reason})"),
        (false, _) => "not done".to_owned(),
    };
    let note = resolution_note(resolved);
    let (name, id) = (&resolved.tool_name, &resolved.tool_use_id);
    escape(&format!("resolved {name} {id}: {found}{note}")).into_owned()
}
