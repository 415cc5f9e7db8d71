//! Records → what a person reads of them: a block for each turn, and in it its calls in their order. A call is shown as
//! soon as it and all before it have ended, so that a log that grows can be followed.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::call_view::{CallView, Ended};
use super::{Filter, Page};
use crate::model::{escape, format_duration};
use crate::record::{Damage, Kind, Record, metadata};

/// Shows one log.
#[derive(Debug)]
pub struct Show {
    page: Page,
    filter: Filter,
    /// Calls that are not shown yet.
    calls: VecDeque<CallView>,
    /// The number of each of them, counted from the first call of the log.
    numbers: HashMap<Uuid, usize>,
    /// How many calls are shown or left out.
    done: usize,
    /// Shown with the first call below it, where not every call is wanted.
    session_title: Option<String>,
    /// Shown with the first call below it.
    turn_title: Option<String>,
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
            session_title: None,
            turn_title: None,
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
            Kind::Turn => self.turn(record)?,
            Kind::ToolCall => {
                let call = CallView::new(record, &content(), &self.page)?;
                self.numbers.insert(record.id, self.done + self.calls.len());
                self.calls.push_back(call);
                String::new()
            }
            Kind::ToolStart => {
                let start: metadata::Start = record.metadata()?;
                if let Some(call) = self.call(record.parent) {
                    call.start(&start);
                }
                String::new()
            }
            kind if kind.ends_call() => self.end(record, content())?,
            Kind::Recovered => self.remark("the end of the file was torn, and set aside"),
            Kind::Resolve => self.remark(&format!("resolved: {}", record.metadata.get())),
            Kind::SessionEnd => self.session_end(record)?,
            _ => String::new(),
        })
    }

    /// The rest, where the log has no more records: calls without a result.
    pub fn finish(&mut self) -> String {
        self.flush(|_| true)
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
        let title = format!("{}\n", self.page.bold(&title));
        self.turn_title = None;
        if self.filter.is_open() {
            return Ok(rest + &title);
        }
        self.session_title = Some(title);
        Ok(rest)
    }

    fn turn(&mut self, record: &Record) -> Result<String, Damage> {
        let rest = self.finish();
        let metadata::Turn { turn } = record.metadata()?;
        self.turn_title = Some(format!("\nturn {turn}\n"));
        Ok(rest)
    }

    fn end(&mut self, record: &Record, content: Result<String, String>) -> Result<String, Damage> {
        let ended = Ended::new(record, content, &self.page)?;
        if let Some(call) = self.call(record.parent) {
            call.end(ended);
        }
        Ok(self.flush(CallView::has_ended))
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

    fn call(&mut self, record: Option<Uuid>) -> Option<&mut CallView> {
        let number = self.numbers.get(&record?)?;
        self.calls.get_mut(number - self.done)
    }

    /// Shows the calls from the first on, as long as they are `ready`.
    fn flush(&mut self, ready: impl Fn(&CallView) -> bool) -> String {
        let mut text = String::new();
        while let Some(call) = self.calls.pop_front_if(|call| ready(call)) {
            self.numbers.remove(&call.record);
            self.done += 1;
            if self.filter.wants(&call.name, call.is_error()) {
                text.extend(self.session_title.take());
                text.extend(self.turn_title.take());
                call.write(&mut text, &self.page);
            }
        }
        text
    }
}
