//! Renders every record of one call, whole.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use uuid::Uuid;

use crate::log_view::call_view::end_label;
use toolq_core::text::{content_text, escape, format_duration, format_time};
use toolq_core::types::safety_text;
use toolq_log::records::{CallContent, CallRecord, StartRecord};
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

/// Renders the records of the calls with an id. There should be only one such call.
#[derive(Debug)]
pub(crate) struct WholeCallRenderer {
    /// A `tool_use_id`, or the id of a `tool_call` record.
    wanted: String,
    /// The `tool_call` records of the calls.
    calls: HashSet<Uuid>,
    /// The tool and the `tool_use_id` of each call that runs: any may be an agent that makes the next.
    running: HashMap<Uuid, (String, String)>,
    /// The same of the agent, by the records of agents' turns.
    agents: HashMap<Uuid, (String, String)>,
}

impl WholeCallRenderer {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            wanted: id.to_owned(),
            calls: HashSet::new(),
            running: HashMap::new(),
            agents: HashMap::new(),
        }
    }

    /// Renders the next record without a trailing newline, or returns `None` if it doesn't belong to the call. `content` is
    /// called if its content is needed.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub(crate) fn render_record(
        &mut self,
        record: &Record,
        content: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<Option<String>, Corruption> {
        if record.kind == RecordKind::ToolCall {
            let call: CallRecord<'_> = record.parse_metadata()?;
            if call.tool_use_id != self.wanted && record.id.to_string() != self.wanted {
                return Ok(None);
            }
            self.calls.insert(record.id);
            return Ok(Some(self.render_call(record, &call, content())));
        }
        self.note_agent(record)?;
        if !record.parent.is_some_and(|call| self.calls.contains(&call)) {
            return Ok(None);
        }
        let event = CallEvent::from_record(record)?;
        let label = match &event {
            Some(CallEvent::Started(start)) => Some(start_label(start)),
            Some(event) => end_label(event),
            None => None,
        };
        let mut text = record_line(record, label.as_deref());
        if record.kind.ends_call() || record.kind == RecordKind::Resolve {
            let output =
                content().map_or_else(|why| format!("({why})"), |json| content_text(&json));
            push_indented(&mut text, &output);
        } else if label.is_none() {
            push_indented(&mut text, record.raw_metadata.get());
        }
        Ok(Some(text))
    }

    /// Remembers which agent has a turn, and forgets a call that ended.
    fn note_agent(&mut self, record: &Record) -> Result<(), Corruption> {
        let Some(parent) = record.parent else {
            return Ok(());
        };
        if record.kind == RecordKind::ToolStart {
            let start: StartRecord<'_> = record.parse_metadata()?;
            let names = (start.tool_name.to_string(), start.tool_use_id.to_string());
            self.running.insert(parent, names);
        } else if record.kind.ends_call() {
            self.running.remove(&parent);
        } else if let Some(agent) = self.running.get(&parent)
            && record.kind == RecordKind::Turn
        {
            self.agents.insert(record.id, agent.clone());
        }
        Ok(())
    }

    /// Renders the first record: `pay toolu_07: turn 0, position 3, batch 1, alone by effect`.
    fn render_call(
        &self,
        record: &Record,
        call: &CallRecord<'_>,
        content: Result<String, String>,
    ) -> String {
        let (name, input) = match content {
            Ok(json) => match serde_json::from_str::<CallContent<'_>>(&json) {
                Ok(CallContent { name, input, .. }) => {
                    let input = input.map_or("(not a JSON object)", |raw| raw.get());
                    (name.into_owned(), input.to_owned())
                }
                Err(error) => (call.tool_name.to_string(), format!("({error})")),
            },
            Err(reason) => (call.tool_name.to_string(), format!("({reason})")),
        };
        let id = &call.tool_use_id;
        let mut text = format!("{} {}", escape(&name), escape(id));
        // Writing to a string can't fail.
        let agent = record.parent.and_then(|parent| self.agents.get(&parent));
        let agent = agent.map_or_else(String::new, |(tool, id)| {
            format!("in {} ({}), its ", escape(tool), escape(id))
        });
        let (turn, position) = (call.turn, call.position);
        let _ = write!(text, ": {agent}turn {turn}, position {position}");
        if let Some(batch) = call.batch {
            let _ = write!(text, ", batch {batch}");
        }
        if let (Some(is_safe), Some(reason)) = (call.concurrency_safe, &call.reason) {
            let _ = write!(text, ", {}", safety_text(is_safe, &escape(reason)));
        }
        text.push('\n');
        text += &record_line(record, None);
        push_indented(&mut text, &input);
        text
    }
}

/// `attempt 2, after exit 75 and a wait of 200ms`.
fn start_label(start: &StartRecord<'_>) -> String {
    let mut label = format!("attempt {}", start.attempt);
    if let Some(failed) = &start.after {
        let wait = format_duration(Duration::from_millis(failed.wait_ms));
        let ended = match (failed.exit.exit, failed.http_status) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(status)) => format!("HTTP {status}"),
            (None, None) => failed.status.label(),
        };
        let _ = write!(label, ", after {} and a wait of {wait}", escape(&ended));
    }
    label
}

/// `  line 7, record 6, 2026-01-01 12:00:00 UTC: tool_result: ok, 12ms`.
fn record_line(record: &Record, label: Option<&str>) -> String {
    let Record {
        line, seq, kind, ..
    } = record;
    let time = format_time(record.timestamp);
    let kind = escape(kind.name()).into_owned();
    match label {
        Some(label) => format!("  line {line}, record {seq}, {time}: {kind}: {label}"),
        None => format!("  line {line}, record {seq}, {time}: {kind}"),
    }
}

/// Adds a text below a line. Its lines stay lines; nothing else in it reaches the terminal.
fn push_indented(text: &mut String, below: &str) {
    for line in below.trim_end_matches('\n').lines() {
        let _ = write!(text, "\n      {}", escape(line));
    }
}
