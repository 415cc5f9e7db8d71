//! Records → what a person reads of them: a block for each turn, and in it its calls in their order, those of an agent
//! below its own. A call is shown as soon as it and all before it have ended, so that a log that grows can be followed.

use std::collections::HashMap;

use uuid::Uuid;

use crate::log_view::call_tree::Tree;
use crate::log_view::call_view::{CallView, Ended};
use crate::log_view::deferred_calls::Late;
use crate::log_view::describe_tracker::Asked;
use crate::log_view::filter::Filter;
use crate::log_view::preview;
use crate::log_view::session_view::{ending, title};
use crate::log_view::text_layout::Page;
use crate::log_view::writer::Writer;
use toolq_core::text::escape;
use toolq_log::records::metadata;
use toolq_log::{Damage, Kind, Record};

/// Shows one log.
#[derive(Debug)]
pub struct Show {
    writer: Writer,
    /// Calls that are not shown yet.
    tree: Tree,
    /// Those that were shown without a result: a resumed run may go on with them.
    left: HashMap<Uuid, CallView>,
    asked: Asked,
    /// Those that are shown when the log is over.
    late: Option<Late>,
}

impl Show {
    /// Shows what `filter` wants on `page`.
    pub fn new(page: Page, filter: Filter) -> Self {
        Self {
            writer: Writer {
                page,
                filter,
                title: None,
                turn: None,
            },
            tree: Tree::default(),
            left: HashMap::new(),
            asked: Asked::default(),
            late: None,
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
            Kind::Turn => self.turn(record)?,
            Kind::ToolCall => self.call(record, &content())?,
            Kind::ToolStart => {
                self.wake(record.parent);
                self.tree.start(record.parent, &record.metadata()?);
                String::new()
            }
            kind if kind.ends_call() => {
                let ended = Ended::new(record, content(), &self.writer.page)?;
                self.wake(record.parent);
                self.tree.end(record.parent, ended);
                self.flush(false)
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
        self.writer.title = None;
        let mut last = None;
        for (title, call) in late.into_calls() {
            if last != title {
                (self.writer.turn, last) = (None, title.clone());
                self.writer.title = title;
            }
            self.writer.call(&call, &mut text);
        }
        text
    }

    /// Calls without a result, where no record of them follows in their session.
    fn rest(&mut self) -> String {
        self.flush(true)
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
        let title = format!("{gap}{}\n", self.writer.page.bold(&title));
        self.writer.turn = None;
        if self.writer.filter.is_open() {
            return Ok(rest + &title);
        }
        self.writer.title = Some(title.into());
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
                Ended::resolved(&resolved, content, &self.writer.page),
            );
            return Ok(rest);
        }
        let found = match (resolved.done, content) {
            (true, Ok(result)) => {
                format!("done: {}", preview::one_line(&result, &self.writer.page))
            }
            (true, Err(words)) => format!("done ({words})"),
            (false, _) => "not done".to_owned(),
        };
        let note = resolved
            .note
            .map_or_else(String::new, |note| format!(" ({note})"));
        let (name, id) = (&resolved.tool_name, &resolved.tool_use_id);
        if !self.writer.filter.wants(name, resolved.is_error) {
            return Ok(rest);
        }
        let line = escape(&format!("resolved {name} {id}: {found}{note}")).into_owned();
        Ok(rest + &format!("\n{}\n", self.writer.page.dim(&line)))
    }

    fn session_end(&mut self, record: &Record) -> Result<String, Damage> {
        let rest = self.rest() + &self.unanswered();
        let end: toolq_log::EndFields = record.metadata()?;
        Ok(rest + &self.remark(&ending(&end)))
    }

    /// A line that is of no call.
    fn remark(&self, text: &str) -> String {
        if !self.writer.filter.is_open() {
            return String::new();
        }
        format!("\n{}\n", self.writer.page.dim(&escape(text)))
    }

    /// A turn of the input, before which all is over, or one of an agent.
    fn turn(&mut self, record: &Record) -> Result<String, Damage> {
        let turn: toolq_log::TurnFields = record.metadata()?;
        let Some(call) = record.parent.filter(|_| turn.agent.is_some()) else {
            return Ok(self.rest());
        };
        self.wake(Some(call));
        self.tree.turn(record.id, call);
        Ok(String::new())
    }

    fn call(
        &mut self,
        record: &Record,
        content: &Result<String, String>,
    ) -> Result<String, Damage> {
        let agent = self.tree.agent_of(record.parent);
        self.wake(agent);
        let above = self.tree.above(agent);
        let call = CallView::new(record, above, content, &self.writer.page)?;
        self.tree.add(call);
        Ok(self.flush(false))
    }

    /// A call that was left without a result is shown anew, below its agent's.
    fn wake(&mut self, record: Option<Uuid>) {
        let Some(record) = record else {
            return;
        };
        let late = self.late.as_mut().and_then(|late| late.take(record));
        if let Some(left) = self.left.remove(&record).or(late) {
            self.wake(left.agent);
            self.tree.add(left.again());
        }
    }

    /// Shows the calls from the first on, as long as they have ended, or all.
    fn flush(&mut self, all: bool) -> String {
        let (mut text, waits) = (String::new(), self.late.is_some());
        let left = self.tree.flush(all, &mut |call, step| {
            if !waits {
                self.writer.step(call, &step, &mut text);
            }
        });
        for call in left {
            if call.has_result() {
                self.tree.forget(&call);
            }
            match &mut self.late {
                Some(late) if !call.has_result() || call.is_error() => {
                    late.add(self.writer.title.clone(), call);
                }
                None if !call.has_result() => {
                    self.left.insert(call.record, call);
                }
                _ => {}
            }
        }
        text
    }
}
