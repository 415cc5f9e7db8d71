//! Adds the records of calls to the tree, and shows the calls that have ended, in call order.

use toolq_core::text::escape;
use toolq_log::records::{ResolveRecord, TurnRecord};
use toolq_log::{CallEvent, Corruption, Record};
use uuid::Uuid;

use crate::log_view::call_view::CallView;
use crate::log_view::log_renderer::LogRenderer;
use crate::log_view::session_list::turn_origin_label;
use crate::log_view::table::TextLayout;
use crate::log_view::table::{self, OutputPreview};

impl LogRenderer {
    /// Renders a turn. One of an agent is added to the agent's call. The calls of earlier turns may still be running: a
    /// server runs turns at the same time.
    pub(super) fn render_turn(&mut self, record: &Record) -> Result<String, Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        let Some(call) = record.parent.filter(|_| turn.agent.is_some()) else {
            self.input_turn = Some((record.id, turn_origin_label(&turn)));
            return Ok(self.flush(false));
        };
        self.reopen_call(Some(call));
        self.tree.add_agent_turn(record.id, call);
        Ok(String::new())
    }

    pub(super) fn render_call(
        &mut self,
        record: &Record,
        content: &Result<String, String>,
    ) -> Result<String, Corruption> {
        let agent = self.tree.agent_call_of(record.parent);
        self.reopen_call(agent);
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
            if let CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) =
                &event
            {
                self.outcomes.add(event.outcome_kind(), end.status.clone());
            }
            self.reopen_call(record.parent);
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
        if let Some(deferred) = &mut self.deferred {
            let content = if resolved.done {
                content
            } else {
                Ok("\"\"".to_owned())
            };
            let output = OutputPreview::new(content, &self.writer.layout);
            deferred.apply(record.parent, event, output);
            return Ok(rest);
        }
        if let Some(call) = record
            .parent
            .and_then(|call| self.open_calls.get_mut(&call))
        {
            call.apply(event, None);
        }
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

    /// Puts a call without a final result back into the tree, below its agent, because a later run continues it.
    fn reopen_call(&mut self, record: Option<Uuid>) {
        let Some(record) = record else {
            return;
        };
        let deferred = self
            .deferred
            .as_mut()
            .and_then(|deferred| deferred.take(record));
        if let Some(call) = self.open_calls.remove(&record).or(deferred) {
            self.reopen_call(call.parent);
            self.tree.add_call(call.reopened());
        }
    }

    /// Shows calls from the front that have ended, or all calls.
    pub(super) fn flush(&mut self, all: bool) -> String {
        let (mut text, defers) = (String::new(), self.deferred.is_some());
        let closed = self.tree.flush(all, &mut |call, step| {
            if !defers {
                self.writer.write_step(call, &step, &mut text);
            }
        });
        for call in closed {
            if call.has_final_result() {
                self.tree.remove_agent_turns(&call);
            }
            match &mut self.deferred {
                Some(deferred) if !call.has_final_result() || call.is_error() => {
                    deferred.add(self.writer.pending_title.clone(), call);
                }
                None if !call.has_final_result() => {
                    self.open_calls.insert(call.record_id, call);
                }
                _ => {}
            }
        }
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
    let note = resolved.note.as_deref();
    let note = note.map_or_else(String::new, |note| format!(" ({note})"));
    let (name, id) = (&resolved.tool_name, &resolved.tool_use_id);
    escape(&format!("resolved {name} {id}: {found}{note}")).into_owned()
}
