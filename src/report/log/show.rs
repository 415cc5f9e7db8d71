//! Records → what a person reads of them: a block for each turn, and in it its calls in their order. A call is shown as
//! soon as it and all before it have ended, so that a log that grows can be followed.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::asked::Asked;
use super::call_view::{CallView, Ended};
use super::{Filter, Page, preview};
use crate::model::{escape, format_duration};
use crate::record::{Damage, Kind, Record, metadata};

/// Metadata of a `resolve`.
#[derive(Deserialize)]
struct Resolved {
    tool_use_id: String,
    tool_name: String,
    done: bool,
    note: Option<String>,
}

/// Shows one log.
#[derive(Debug)]
pub struct Show {
    page: Page,
    filter: Filter,
    /// Calls that are not shown yet.
    calls: VecDeque<CallView>,
    /// The number of each of them, counted from the first call that was queued.
    numbers: HashMap<Uuid, usize>,
    /// How many were shown or left out.
    done: usize,
    /// Those that were shown without a result: a resumed run may go on with them.
    left: HashMap<Uuid, CallView>,
    asked: Asked,
    /// Shown with the first call below it, where not every call is wanted.
    title: Option<String>,
    /// The turn whose calls are shown.
    turn: Option<usize>,
}

impl Show {
    /// Shows what `filter` wants on `page`.
    pub fn new(page: Page, filter: Filter) -> Self {
        Self {
            page,
            filter,
            calls: VecDeque::new(),
            numbers: HashMap::new(),
            done: 0,
            left: HashMap::new(),
            asked: Asked::default(),
            title: None,
            turn: None,
        }
    }

    /// Takes the next record; `content` is asked for where it is needed. Returns the lines that can be shown now, each
    /// with its break.
    ///
    /// # Errors
    /// Its metadata is not that of its type.
    pub fn take(
        &mut self,
        record: &Record,
        content: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<String, Damage> {
        Ok(match &record.kind {
            Kind::Session => self.session(record)?,
            Kind::Turn => self.flush(|_| true),
            Kind::ToolCall => {
                self.queue(CallView::new(record, &content(), &self.page)?);
                String::new()
            }
            Kind::ToolStart => {
                let start: metadata::Start = record.metadata()?;
                if let Some(call) = self.call(record.parent) {
                    call.start(&start);
                }
                String::new()
            }
            kind if kind.ends_call() => {
                let ended = Ended::new(record, content(), &self.page)?;
                if let Some(call) = self.call(record.parent) {
                    call.end(ended);
                }
                self.flush(CallView::has_ended)
            }
            Kind::DescribeStart => {
                self.asked.start(record)?;
                String::new()
            }
            Kind::DescribeEnd => {
                let words = self.asked.end(record)?;
                self.remark(&words)
            }
            Kind::Recovered => self.remark("the end of the file was torn, and set aside"),
            Kind::Resolve => self.resolve(record, &content())?,
            Kind::SessionEnd => self.session_end(record)?,
            _ => String::new(),
        })
    }

    /// The rest, where the log has no more records: calls without a result, tools that were asked and did not answer.
    pub fn finish(&mut self) -> String {
        let calls = self.flush(|_| true);
        let asked = self.asked.unanswered();
        calls + &asked.map_or_else(String::new, |words| self.remark(&words))
    }

    fn session(&mut self, record: &Record) -> Result<String, Damage> {
        let rest = self.finish();
        let session: metadata::SessionStart = record.metadata()?;
        let ms = i64::try_from(record.timestamp).unwrap_or(i64::MAX);
        let time = Timestamp::from_millisecond(ms).unwrap_or_default();
        let title = format!(
            "session of {} with {} (toolq {})",
            time.strftime("%Y-%m-%d %H:%M:%S UTC"),
            escape(&session.tools.path),
            escape(&session.toolq)
        );
        let gap = if record.seq > 0 { "\n" } else { "" };
        let title = format!("{gap}{}\n", self.page.bold(&title));
        self.turn = None;
        if self.filter.is_open() {
            return Ok(rest + &title);
        }
        self.title = Some(title);
        Ok(rest)
    }

    fn resolve(
        &mut self,
        record: &Record,
        content: &Result<String, String>,
    ) -> Result<String, Damage> {
        let resolved: Resolved = record.metadata()?;
        let call = record.parent.and_then(|call| self.left.remove(&call));
        if call.is_some_and(|call| !self.filter.wants(&call.name, true)) {
            return Ok(String::new());
        }
        let Resolved {
            tool_use_id,
            tool_name,
            done,
            note,
        } = resolved;
        let found = match (done, content) {
            (true, Ok(result)) => format!("done: {}", preview::one_line(result, &self.page)),
            (true, Err(words)) => format!("done ({words})"),
            (false, _) => "not done".to_owned(),
        };
        let note = note.map_or_else(String::new, |note| format!(" ({note})"));
        Ok(self.remark(&format!(
            "resolved {tool_name} {tool_use_id}: {found}{note}"
        )))
    }

    fn session_end(&mut self, record: &Record) -> Result<String, Damage> {
        let rest = self.finish();
        let end: metadata::SessionEnd = record.metadata()?;
        let took = format_duration(Duration::from_millis(end.duration_ms));
        let one = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            _ => format!("{count} {word}s"),
        };
        let mut words = vec![one(end.calls, "call")];
        words.extend((end.errors > 0).then(|| one(end.errors, "error")));
        let counts = [(end.skipped, "skipped"), (end.in_doubt, "in doubt")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        words.extend(counts.map(|(count, word)| format!("{count} {word}")));
        let line = format!("exit {} after {took}: {}", end.exit_code, words.join(", "));
        Ok(rest + &self.remark(&line))
    }

    /// A line that is of no call.
    fn remark(&self, text: &str) -> String {
        if !self.filter.is_open() {
            return String::new();
        }
        format!("\n{}\n", self.page.dim(&escape(text)))
    }

    fn queue(&mut self, call: CallView) {
        self.numbers
            .insert(call.record, self.done + self.calls.len());
        self.calls.push_back(call);
    }

    /// The call that a record is of; one that was left without a result is shown anew.
    fn call(&mut self, record: Option<Uuid>) -> Option<&mut CallView> {
        let record = record?;
        if let Some(left) = self.left.remove(&record) {
            self.queue(left.again());
        }
        let number = self.numbers.get(&record)?;
        self.calls.get_mut(number - self.done)
    }

    /// Shows the calls from the first on, as long as they are `ready`.
    fn flush(&mut self, ready: impl Fn(&CallView) -> bool) -> String {
        let mut text = String::new();
        while let Some(call) = self.calls.pop_front_if(|call| ready(call)) {
            self.numbers.remove(&call.record);
            self.done += 1;
            if self.filter.wants(&call.name, call.is_error()) {
                text.extend(self.title.take());
                self.write(&call, &mut text);
            }
            if !call.has_result() {
                self.left.insert(call.record, call);
            }
        }
        text
    }

    fn write(&mut self, call: &CallView, text: &mut String) {
        if self.turn.replace(call.turn) != Some(call.turn) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\nturn {}", call.turn);
        }
        call.write(text, &self.page);
    }
}
