//! Records → what a person reads of them: a block for each turn, and in it its calls in their order. A call is shown as
//! soon as it and all before it have ended, so that a log that grows can be followed.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use uuid::Uuid;

use super::asked::Asked;
use super::call_view::{CallView, Ended};
use super::late::Late;
use super::session_view::{ending, title};
use super::{Filter, Page, preview};
use crate::model::escape;
use crate::record::{Damage, Kind, Record, metadata};

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
    /// Those that are shown when the log is over.
    late: Option<Late>,
    /// Shown with the first call below it, where not every call is wanted.
    title: Option<Arc<str>>,
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
            late: None,
            title: None,
            turn: None,
        }
    }

    /// The same, of a log that has an end: no call is shown before it is known how it stands there.
    #[must_use]
    pub fn at_the_end(self) -> Self {
        Self {
            late: Some(Late::default()),
            ..self
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
            Kind::Turn => self.rest(),
            Kind::ToolCall => {
                self.queue(CallView::new(record, &content(), &self.page)?);
                String::new()
            }
            Kind::ToolStart => {
                let start: metadata::Start<'_> = record.metadata()?;
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
            Kind::Recovered => {
                self.rest() + &self.remark("the end of the file was torn, and set aside")
            }
            Kind::Resolve => self.resolve(record, content())?,
            Kind::SessionEnd => self.session_end(record)?,
            _ => String::new(),
        })
    }

    /// The rest, where the log has no more records: calls without a result, and what waited for the end.
    pub fn finish(&mut self) -> String {
        let mut text = self.rest() + &self.unanswered();
        let Some(late) = self.late.take() else {
            return text;
        };
        self.title = None;
        for (title, call) in late.into_calls() {
            if self.filter.wants(&call.name, call.is_error()) {
                if self.title != title {
                    text.extend(title.as_deref());
                    (self.title, self.turn) = (title, None);
                }
                self.write(&call, &mut text);
            }
        }
        text
    }

    /// Calls without a result, where no record of them follows in their session.
    fn rest(&mut self) -> String {
        self.flush(|_| true)
    }

    /// Tools that were asked what they take, and of whom their session says no more.
    fn unanswered(&mut self) -> String {
        let asked = self.asked.unanswered();
        asked.map_or_else(String::new, |words| self.remark(&words))
    }

    fn session(&mut self, record: &Record) -> Result<String, Damage> {
        let rest = self.rest() + &self.unanswered();
        let session: metadata::SessionStart = record.metadata()?;
        let title = title(&session, record.timestamp);
        let gap = if record.seq > 0 { "\n" } else { "" };
        let title = format!("{gap}{}\n", self.page.bold(&title));
        self.turn = None;
        if self.filter.is_open() {
            return Ok(rest + &title);
        }
        self.title = Some(title.into());
        Ok(rest)
    }

    fn resolve(
        &mut self,
        record: &Record,
        content: Result<String, String>,
    ) -> Result<String, Damage> {
        let rest = self.rest();
        let resolved: metadata::Resolved = record.metadata()?;
        if let Some(late) = &mut self.late {
            late.end(
                record.parent,
                Ended::resolved(&resolved, content, &self.page),
            );
            return Ok(rest);
        }
        let found = match (resolved.done, content) {
            (true, Ok(result)) => format!("done: {}", preview::one_line(&result, &self.page)),
            (true, Err(words)) => format!("done ({words})"),
            (false, _) => "not done".to_owned(),
        };
        let note = resolved
            .note
            .map_or_else(String::new, |note| format!(" ({note})"));
        let (name, id) = (&resolved.tool_name, &resolved.tool_use_id);
        if !self.filter.wants(name, resolved.is_error) {
            return Ok(rest);
        }
        let line = escape(&format!("resolved {name} {id}: {found}{note}")).into_owned();
        Ok(rest + &format!("\n{}\n", self.page.dim(&line)))
    }

    fn session_end(&mut self, record: &Record) -> Result<String, Damage> {
        let rest = self.rest() + &self.unanswered();
        let end: metadata::SessionEnd = record.metadata()?;
        Ok(rest + &self.remark(&ending(&end)))
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
        let late = self.late.as_mut().and_then(|late| late.take(record));
        if let Some(left) = self.left.remove(&record).or(late) {
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
            if let Some(late) = &mut self.late {
                let keeps = !call.has_result() || call.is_error();
                if keeps {
                    late.add(self.title.clone(), call);
                }
                continue;
            }
            if self.filter.wants(&call.name, call.is_error()) {
                text.extend(self.title.take().as_deref());
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
