//! Renders the records of a log as text: a block per turn with its calls in call order, and an agent's calls below the
//! agent. A call is shown as soon as it and all before it have ended, so that a growing log can be followed.

mod call_records;

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::log_view::call_filter::CallFilter;
use crate::log_view::call_tree::CallTree;
use crate::log_view::call_view::CallView;
use crate::log_view::call_writer::CallWriter;
use crate::log_view::deferred_calls::DeferredCalls;
use crate::log_view::describe_tracker::DescribeTracker;
use crate::log_view::preview::OutputPreview;
use crate::log_view::server_view::{list_end_label, server_end_label, server_start_label};
use crate::log_view::session_view::{session_end_label, session_title};
use crate::log_view::text_layout::TextLayout;
use crate::log_view::tools_change_view::tools_change_label;
use crate::terminal::OutcomeTally;
use toolq_core::text::escape;
use toolq_log::records::{LateResultRecord, SessionEndRecord, SessionRecord};
use toolq_log::{Corruption, Record, RecordKind};

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
