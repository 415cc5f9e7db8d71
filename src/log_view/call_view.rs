//! A call as `toolq log show` prints it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;
use uuid::Uuid;

use crate::log_view::table::{self, OutputPreview, TextLayout};
use crate::output::kind_style;
use toolq_core::text::{escape, format_bytes, format_duration};
use toolq_core::types::OutcomeKind;
use toolq_log::records::{ApprovalRecord, CallContent, CallEndRecord, CallRecord, ResolveRecord};
use toolq_log::{CallEvent, Corruption, Record};

/// Indentation of the lines below a call's first line.
const DETAIL_INDENT: usize = 7;
/// Indentation of an agent's calls below the agent.
const NESTING_INDENT: usize = 5;
/// Minimum width of the name column.
const NAME_COLUMNS: usize = 20;
/// A status that has less room than this beside the name goes below it.
const MIN_STATUS_COLUMNS: usize = 12;
/// The gap between an id and an input.
const ID_GAP: &str = "  ";

/// What people read about a call that nobody has approved or denied yet.
pub(crate) const WAITS_FOR_APPROVAL: &str = "waits for an approval";

/// What is known of a call so far. Its size is bounded, regardless of the size of the call.
#[derive(Debug)]
pub(crate) struct CallView {
    pub(super) record_id: Uuid,
    /// The record of the agent's call that this call belongs to.
    pub(super) parent: Option<Uuid>,
    pub(super) name: String,
    /// The turn of its agent, or of the input.
    pub(super) turn: usize,
    /// The turn of the input that it, or its outermost agent, belongs to.
    pub(super) input_turn: usize,
    /// Where that turn comes from.
    pub(super) turn_origin: Option<Arc<str>>,
    /// The names of its parent agents: `coordinator › librarian › `.
    path_prefix: String,
    depth: usize,
    position: usize,
    /// Its `tool_use_id`, escaped.
    id: String,
    input: String,
    needs_approval: bool,
    /// Who approved or denied it, and why.
    approval: Option<String>,
    has_started: bool,
    end: Option<CallEndView>,
}

impl CallView {
    /// Creates a view from a `tool_call` record, below `parent` if it is an agent's call.
    pub(super) fn new(
        record: &Record,
        parent: Option<&Self>,
        content: &Result<String, String>,
        layout: &TextLayout,
    ) -> Result<Self, Corruption> {
        let call: CallRecord<'_> = record.parse_metadata()?;
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        let layout = &layout.inset(depth * NESTING_INDENT);
        let (name, input) = match content {
            Ok(json) => match serde_json::from_str::<CallContent<'_>>(json) {
                Ok(CallContent { name, input, .. }) => {
                    (name.into_owned(), table::json_preview(input, layout))
                }
                Err(error) => (String::new(), format!("({error})")),
            },
            Err(reason) => (String::new(), format!("({reason})")),
        };
        Ok(Self {
            record_id: record.id,
            parent: parent.map(|parent| parent.record_id),
            name,
            turn: call.turn,
            input_turn: parent.map_or(call.turn, |parent| parent.input_turn),
            turn_origin: parent.and_then(|parent| parent.turn_origin.clone()),
            path_prefix: parent.map_or_else(String::new, |parent| format!("{} › ", parent.path())),
            depth,
            position: call.position,
            id: escape(&call.tool_use_id).into_owned(),
            input,
            needs_approval: call.needs_approval,
            approval: None,
            has_started: false,
            end: None,
        })
    }

    /// Applies a record of the call. `output` is its content, if that is shown.
    pub(super) fn apply(&mut self, event: &CallEvent<'_>, output: Option<OutputPreview>) {
        if let CallEvent::Started(start) = event {
            self.has_started = true;
            (*start.tool_name).clone_into(&mut self.name);
        }
        if let CallEvent::Approved(approval) = event {
            self.approval = Some(approval_label(approval));
        }
        self.end = output.and_then(|output| CallEndView::new(event, output));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether it failed, did not run, or has no result.
    pub(super) fn is_error(&self) -> bool {
        self.end.as_ref().is_none_or(|end| end.is_error)
    }

    /// Returns the number of its parent agents.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns its name after those of its parent agents.
    pub(super) fn path(&self) -> String {
        format!("{}{}", self.path_prefix, self.name)
    }

    /// Appends all its lines to `text`, indented below its agent unless it is shown `alone`.
    pub(super) fn write(&self, text: &mut String, alone: bool, layout: &TextLayout) {
        let left = if alone {
            0
        } else {
            self.depth * NESTING_INDENT
        };
        let name = layout.pad(&escape(&self.path()), NAME_COLUMNS);
        let position = self.position.to_string();
        // Without its agent, the position would look like that of a call of the input.
        let position = if alone && self.depth > 0 {
            ""
        } else {
            &position
        };
        let head = format!("{:left$}  {position:>3}  {name}", "");
        self.write_status(text, &head, left + DETAIL_INDENT, layout);
        self.write_input(text, left, layout);
        self.write_output(text, left, layout);
    }

    /// Appends the first lines of an agent's call, above the agent's calls.
    pub(super) fn write_head(&self, text: &mut String, layout: &TextLayout) {
        let (left, position) = (self.depth * NESTING_INDENT, self.position);
        let name = layout.pad(&escape(&self.path()), 0);
        let _ = writeln!(text, "{:left$}  {position:>3}  {name}", "");
        self.write_input(text, left, layout);
    }

    /// Appends the heading of a turn of the agent.
    pub(super) fn write_turn(&self, text: &mut String, turn: usize, layout: &TextLayout) {
        let left = self.depth * NESTING_INDENT + DETAIL_INDENT;
        let heading = layout.pad(&format!("turn {turn} of {}", escape(&self.path())), 0);
        let _ = writeln!(text, "{:left$}{}", "", layout.dim(&heading));
    }

    /// Appends the last lines of an agent's call, below the agent's calls.
    pub(super) fn write_end(&self, text: &mut String, layout: &TextLayout) {
        let left = self.depth * NESTING_INDENT;
        let name = layout.pad(&escape(&self.path()), NAME_COLUMNS);
        let indent = left + DETAIL_INDENT;
        self.write_status(text, &format!("{:indent$}{name}", ""), indent, layout);
        self.write_output(text, left, layout);
    }

    fn write_input(&self, text: &mut String, left: usize, layout: &TextLayout) {
        let indent = left + DETAIL_INDENT;
        let (id, input) = (layout.dim(&self.id), layout.dim(&self.input));
        let columns = indent + self.id.width() + ID_GAP.len() + self.input.width();
        // A terminal that is too narrow for both has them below each other.
        let _ = if layout.fits(columns) {
            writeln!(text, "{:indent$}{id}{ID_GAP}{input}", "")
        } else {
            writeln!(text, "{:indent$}{id}\n{:indent$}{input}", "", "")
        };
        if let Some(approval) = &self.approval {
            let approval = layout.truncate(&escape(approval), indent);
            let _ = writeln!(text, "{:indent$}{approval}", "");
        }
    }

    fn write_output(&self, text: &mut String, left: usize, layout: &TextLayout) {
        if let Some(end) = &self.end {
            if let Some(cause) = &end.cause {
                let cause = layout.truncate(&escape(cause), left + DETAIL_INDENT);
                let _ = writeln!(text, "{:1$}{cause}", "", left + DETAIL_INDENT);
            }
            end.output
                .write(text, &" ".repeat(left + DETAIL_INDENT), layout);
        }
    }

    /// Appends the line that begins with the name and ends with the status. What doesn't fit the terminal follows below.
    fn write_status(&self, text: &mut String, head: &str, indent: usize, layout: &TextLayout) {
        let status = self.status_label(layout);
        let line = if layout.fits(head.width() + 2 + MIN_STATUS_COLUMNS) {
            layout.wrap(&format!("{head}  {status}"), indent)
        } else {
            let status = layout.wrap(&format!("{:indent$}{status}", ""), indent);
            format!("{}\n{status}", head.trim_end())
        };
        // Writing to a string can't fail.
        let _ = writeln!(text, "{line}");
    }

    fn status_label(&self, layout: &TextLayout) -> String {
        match &self.end {
            Some(end) => layout.paint(&end.status, end.style),
            None if self.has_started => layout.paint("started, no result", "33"),
            None if self.needs_approval && self.approval.is_none() => {
                layout.paint(WAITS_FOR_APPROVAL, "33")
            }
            None => layout.paint("not started, no result", "33"),
        }
    }
}

/// `approved by plan 3f9c…`, or `denied by terminal (anna): too much`.
pub(crate) fn approval_label(approval: &ApprovalRecord<'_>) -> String {
    let decision = if approval.is_yes() {
        "approved"
    } else {
        "denied"
    };
    let by = match &*approval.by {
        "all" | "named" => "`--approve`",
        "approvals" => "`toolq approvals`",
        by => by,
    };
    let mut label = format!("{decision} by {by}");
    if let Some(plan) = &approval.plan {
        let _ = write!(label, " {plan}");
    }
    if let Some(client) = &approval.client {
        let _ = write!(label, " {client}");
    }
    if let Some(user) = &approval.user {
        let _ = write!(label, " ({user})");
    }
    if let Some(reason) = &approval.reason {
        let _ = write!(label, ": {reason}");
    }
    label
}

// How a call ended, as `toolq log show` prints it.

/// How a call ended.
#[derive(Debug)]
struct CallEndView {
    is_error: bool,
    status: String,
    /// Why it failed, if the model read something else.
    cause: Option<String>,
    /// Green for success, red for a failure, yellow if there is no result.
    style: &'static str,
    output: OutputPreview,
}

impl CallEndView {
    /// Returns `None` if the record doesn't end the call.
    pub(super) fn new(event: &CallEvent<'_>, output: OutputPreview) -> Option<Self> {
        let style = match event {
            CallEvent::Resolved(resolve) if resolve.done => "31",
            event => kind_style(event.outcome_kind()),
        };
        Some(Self {
            is_error: event.is_error(),
            status: end_label(event)?,
            cause: event.end().and_then(|end| hidden_cause(end, &output)),
            style,
            output,
        })
    }
}

/// Returns the cause of a failure that the result doesn't tell: `cause: password authentication failed`.
fn hidden_cause(end: &CallEndRecord<'_>, output: &OutputPreview) -> Option<String> {
    let message = end.error.as_ref()?.message.lines().next()?;
    let is_told = message == end.status.label() || output.shows(message);
    (!is_told).then(|| format!("cause: {message}"))
}

/// Formats how a call ended: `failed: exit 3, 12ms, 1.5 KiB, 2 attempts`. Returns `None` if the record doesn't end it.
pub(crate) fn end_label(event: &CallEvent<'_>) -> Option<String> {
    let parts = event
        .end()
        .map(|end| end_parts(end, event.outcome_kind()).join(", "));
    parts.or_else(|| match event {
        CallEvent::Resolved(resolve) => {
            let found = if resolve.done {
                "done"
            } else {
                "not done; it runs when it is asked for again"
            };
            Some(format!("resolved: {found}{}", resolution_note(resolve)))
        }
        _ => None,
    })
}

/// Returns how the person who settled a call knows: ` (asked the bank)`.
pub(crate) fn resolution_note(resolved: &ResolveRecord<'_>) -> String {
    let note = resolved.note.as_deref();
    note.map_or_else(String::new, |note| format!(" ({note})"))
}

/// Formats how a call ended in a few words: `failed: exit 3`, `rejected: unknown tool`.
pub(crate) fn end_summary(event: &CallEvent<'_>) -> String {
    let kind = event.outcome_kind();
    match event {
        CallEvent::Resolved(resolve) if resolve.done => kind.with_cause("resolved"),
        event => event
            .end()
            .map_or_else(|| kind.label().to_owned(), |end| summary_of(end, kind)),
    }
}

fn summary_of(end: &CallEndRecord<'_>, kind: OutcomeKind) -> String {
    let status = Some(end.status.label()).filter(|status| status != kind.label());
    let exit = end.exit.exit.filter(|code| *code != 0);
    let causes = [
        status,
        exit.map(|code| format!("exit {code}")),
        end.exit.signal.map(|signal| format!("signal {signal}")),
        end.http_status.map(|status| format!("HTTP {status}")),
    ];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    let summary = escape(&kind.with_cause(&causes.join(", "))).into_owned();
    match end.memory {
        Some(_) => format!("{summary}, from memory"),
        None => summary,
    }
}

/// Returns how it ended, then how long it took and how much it wrote.
fn end_parts(end: &CallEndRecord<'_>, kind: OutcomeKind) -> Vec<String> {
    let mut parts = vec![summary_of(end, kind)];
    if end.attempts > 0 {
        parts.push(format_duration(Duration::from_millis(end.duration_ms)));
    }
    parts.extend(end.bytes.filter(|bytes| *bytes > 0).map(format_bytes));
    parts.extend(
        end.cut_bytes
            .map(|cut| format!("{} cut", format_bytes(cut))),
    );
    if end.attempts > 1 {
        parts.push(format!("{} attempts", end.attempts));
    }
    parts
}
