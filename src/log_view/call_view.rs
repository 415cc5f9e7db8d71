use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::log_view::preview;
use crate::log_view::preview::Preview;
use crate::log_view::text_layout::Page;
use toolq_core::text::{escape, format_bytes, format_duration};
use toolq_log::records::metadata;
use toolq_log::{Damage, Kind, Record};

/// Columns before a line under a call, and those by which an agent's calls stand below it.
const INDENT: usize = 7;
const BELOW: usize = 5;
/// Columns of names, where they are no longer.
const NAME: usize = 20;

/// A call as it is known so far: little, whatever its size.
#[derive(Debug)]
pub(crate) struct CallView {
    pub(super) record: Uuid,
    /// The call of an agent that it stands below.
    pub(super) agent: Option<Uuid>,
    pub(super) name: String,
    /// Of its agent, or of the input.
    pub(super) turn: usize,
    /// The turn of the input that it is of, as is its agent.
    pub(super) heading: usize,
    /// The records of its agent's turns.
    pub(super) turns: Vec<Uuid>,
    /// The names of the agents that it stands below: `coordinator › librarian › `.
    above: String,
    depth: usize,
    position: usize,
    input: String,
    started: bool,
    ended: Option<Ended>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    is_error: bool,
    /// No later run goes on with it.
    is_final: bool,
    status: String,
    /// Green where all is well, yellow where nothing ran, red else.
    style: &'static str,
    output: Preview,
}

#[derive(Deserialize)]
struct Content<'a> {
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl CallView {
    /// The call of a record, below that of an agent.
    pub(super) fn new(
        record: &Record,
        above: Option<&Self>,
        content: &Result<String, String>,
        page: &Page,
    ) -> Result<Self, Damage> {
        let call: metadata::Call = record.metadata()?;
        let depth = above.map_or(0, |above| above.depth + 1);
        let page = &page.inset(depth * BELOW);
        let (name, input) = match content {
            Ok(json) => match serde_json::from_str::<Content<'_>>(json) {
                Ok(Content { name, input }) => (name, preview::json(input, page)),
                Err(error) => (String::new(), format!("({error})")),
            },
            Err(words) => (String::new(), format!("({words})")),
        };
        Ok(Self {
            record: record.id,
            agent: above.map(|above| above.record),
            name,
            turn: call.turn,
            heading: above.map_or(call.turn, |above| above.heading),
            turns: Vec::new(),
            above: above.map_or_else(String::new, |above| format!("{} › ", above.path())),
            depth,
            position: call.position,
            input,
            started: false,
            ended: None,
        })
    }

    pub(super) fn start(&mut self, start: &metadata::Start<'_>) {
        self.started = true;
        (*start.tool_name).clone_into(&mut self.name);
    }

    pub(super) fn end(&mut self, ended: Ended) {
        self.ended = Some(ended);
    }

    /// The same call before it starts anew.
    pub(super) fn again(self) -> Self {
        Self {
            started: false,
            ended: None,
            ..self
        }
    }

    /// Whether it has a result that stays.
    pub(super) fn has_result(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.is_final)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether it failed, did not run, or has no result.
    pub(super) fn is_error(&self) -> bool {
        self.ended.as_ref().is_none_or(|ended| ended.is_error)
    }

    /// How many agents it stands below.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Its name behind those of the agents above it.
    pub(super) fn path(&self) -> String {
        format!("{}{}", self.above, self.name)
    }

    /// Adds its lines, by itself or at its place below its agent.
    pub(super) fn write(&self, text: &mut String, alone: bool, page: &Page) {
        let left = if alone { 0 } else { self.depth * BELOW };
        let name = page.pad(&escape(&self.path()), NAME);
        let position = self.position.to_string();
        // Beside calls of the input it would be taken for one of theirs.
        let position = if alone && self.depth > 0 {
            ""
        } else {
            &position
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:left$}  {position:>3}  {name}  {}",
            "",
            self.status(page)
        );
        self.write_input(text, left, page);
        self.write_output(text, left, page);
    }

    /// Adds its first lines, above those of its agent's calls.
    pub(super) fn write_head(&self, text: &mut String, page: &Page) {
        let (left, position) = (self.depth * BELOW, self.position);
        let name = page.pad(&escape(&self.path()), 0);
        let _ = writeln!(text, "{:left$}  {position:>3}  {name}", "");
        self.write_input(text, left, page);
    }

    /// Adds the head of a turn of its agent.
    pub(super) fn write_turn(&self, text: &mut String, turn: usize, page: &Page) {
        let left = self.depth * BELOW + INDENT;
        let words = page.pad(&format!("turn {turn} of {}", escape(&self.path())), 0);
        let _ = writeln!(text, "{:left$}{}", "", page.dim(&words));
    }

    /// Adds its last lines, below those of its agent's calls.
    pub(super) fn write_end(&self, text: &mut String, page: &Page) {
        let left = self.depth * BELOW;
        let name = page.pad(&escape(&self.path()), NAME);
        let (indent, status) = (left + INDENT, self.status(page));
        let _ = writeln!(text, "{:indent$}{name}  {status}", "");
        self.write_output(text, left, page);
    }

    fn write_input(&self, text: &mut String, left: usize, page: &Page) {
        let indent = left + INDENT;
        let _ = writeln!(text, "{:indent$}{}", "", page.dim(&self.input));
    }

    fn write_output(&self, text: &mut String, left: usize, page: &Page) {
        if let Some(ended) = &self.ended {
            ended.output.write(text, &" ".repeat(left + INDENT), page);
        }
    }

    fn status(&self, page: &Page) -> String {
        match &self.ended {
            Some(ended) => page.paint(&ended.status, ended.style),
            None if self.started => page.paint("started, and no result", "33"),
            None => page.paint("not started, and no result", "33"),
        }
    }
}

impl Ended {
    pub(super) fn new(
        record: &Record,
        content: Result<String, String>,
        page: &Page,
    ) -> Result<Self, Damage> {
        let end: metadata::CallEnd<'_> = record.metadata()?;
        Ok(Self {
            is_error: end.is_error,
            is_final: record.kind == Kind::ToolResult
                && end.attempts > 0
                && !metadata::is_cut_short(&end.status),
            status: status(&end),
            style: match record.kind {
                Kind::ToolResult if end.is_error => "31",
                Kind::ToolResult => "32",
                _ => "33",
            },
            output: Preview::of(content, page),
        })
    }

    /// What somebody found out about a call in doubt.
    pub(super) fn resolved(
        resolved: &metadata::Resolved,
        content: Result<String, String>,
        page: &Page,
    ) -> Self {
        let (status, content) = if resolved.done {
            ("resolved", content)
        } else {
            let status = "resolved: not done, so it runs when the run is resumed";
            (status, Ok("\"\"".to_owned()))
        };
        Self {
            is_error: resolved.is_error || !resolved.done,
            is_final: resolved.done,
            status: status.to_owned(),
            style: if resolved.done { "31" } else { "33" },
            output: Preview::of(content, page),
        }
    }
}

/// `failed, exit 3, 12ms, 1.5 KiB, 2 attempts`.
fn status(end: &metadata::CallEnd<'_>) -> String {
    let mut words = vec![escape(&end.status).replace('_', " ")];
    words.extend(
        end.exit
            .filter(|code| *code != 0)
            .map(|code| format!("exit {code}")),
    );
    words.extend(end.signal.map(|signal| format!("signal {signal}")));
    words.extend(end.http_status.map(|status| format!("HTTP {status}")));
    if end.attempts > 0 {
        words.push(format_duration(Duration::from_millis(end.duration_ms)));
    }
    words.extend(end.bytes.filter(|bytes| *bytes > 0).map(format_bytes));
    words.extend(
        end.cut_bytes
            .map(|cut| format!("{} cut", format_bytes(cut))),
    );
    if end.attempts > 1 {
        words.push(format!("{} attempts", end.attempts));
    }
    words.join(", ")
}
