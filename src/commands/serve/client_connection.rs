//! The connection to the client, seen from the calls: answers and progress go out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolq_mcp::server::{CallId, ServerSession, ToolCall, ToolCatalog};

use crate::commands::serve::answer_content::call_result;
use crate::commands::serve::call_progress::CallProgress;
use crate::commands::serve::client_output::ClientOutput;
use crate::session::RunSinks;
use redact::Mask;
use toolq_core::types::{CallAnswer, CallRef, EmitError, Event, EventSink};
use toolq_engine::AnswerDelivery;

/// The connection, and the calls that the client waits for. Everything that uses it is driven by one task, so its lock
/// is never contended.
pub(crate) struct ClientConnection {
    pub(crate) protocol: ServerSession,
    open_calls: HashMap<usize, OpenCall>,
    next_turn: usize,
    output: ClientOutput,
}

/// A call without an answer, by the number of its turn.
struct OpenCall {
    id: CallId,
    wants_progress: bool,
    /// Whether its tool has an output schema.
    is_json: bool,
    progress: CallProgress,
}

impl ClientConnection {
    /// `mask` is for the errors of the protocol; answers and progress are masked before they come here.
    pub(crate) fn new(catalog: Arc<ToolCatalog>, mask: Arc<Mask>, output: ClientOutput) -> Self {
        Self {
            protocol: ServerSession::new(catalog).with_mask(mask),
            open_calls: HashMap::new(),
            next_turn: 0,
            output,
        }
    }

    /// Returns how many calls have no answer.
    pub(crate) fn open_calls(&self) -> usize {
        self.open_calls.len()
    }

    /// Gives a call the number of its turn. `is_json` says whether its tool has an output schema.
    pub(crate) fn begin_turn(&mut self, call: &ToolCall, is_json: bool) -> usize {
        let turn = self.next_turn;
        self.next_turn += 1;
        let open = OpenCall {
            id: call.call,
            wants_progress: call.wants_progress,
            is_json,
            progress: CallProgress::default(),
        };
        self.open_calls.insert(turn, open);
        turn
    }

    /// Forgets a call that the client no longer waits for, and returns its turn.
    pub(crate) fn forget_call(&mut self, id: CallId) -> Option<usize> {
        let mut calls = self.open_calls.iter();
        let turn = calls.find_map(|(turn, call)| (call.id == id).then_some(*turn))?;
        self.open_calls.remove(&turn);
        Some(turn)
    }

    /// Sends what the protocol has to say.
    pub(crate) fn send_output(&mut self) {
        let lines = self.protocol.take_output();
        if !lines.is_empty() {
            self.output.send(lines);
        }
    }

    /// Answers the call of a turn. Returns whether the client waits for the answer.
    fn answer(&mut self, turn: usize, answer: &CallAnswer) -> bool {
        let Some(call) = self.open_calls.remove(&turn) else {
            return false;
        };
        let result = call_result(answer, call.is_json);
        self.protocol.answer_call(call.id, &result);
        self.send_output();
        true
    }

    /// Tells the client that its calls are still running: many clients give up a call of which they hear nothing.
    pub(crate) fn send_heartbeats(&mut self) {
        if self.output.is_full() {
            return;
        }
        for open in self
            .open_calls
            .values_mut()
            .filter(|open| open.wants_progress)
        {
            let (progress, total) = open.progress.advance(None);
            self.protocol
                .report_progress(open.id, progress, total, None);
        }
        self.send_output();
    }

    fn report_progress(&mut self, call: &CallRef, fraction: Option<f64>, message: Option<&str>) {
        if call.parent.is_some() || self.output.is_full() {
            return;
        }
        if let Some(open) = self.open_calls.get_mut(&call.turn) {
            let (progress, total) = open.progress.advance(fraction);
            self.protocol
                .report_progress(open.id, progress, total, message);
            self.send_output();
        }
    }
}

/// Locks the connection.
pub(crate) fn lock(connection: &Mutex<ClientConnection>) -> MutexGuard<'_, ClientConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends each answer as soon as its call has ended.
pub(crate) struct AnswerSender<'c>(&'c Mutex<ClientConnection>);

impl<'c> AnswerSender<'c> {
    pub(crate) fn new(connection: &'c Mutex<ClientConnection>) -> Self {
        Self(connection)
    }
}

impl AnswerDelivery for AnswerSender<'_> {
    fn deliver(&mut self, call: &CallRef, answer: CallAnswer, sink: &mut dyn EventSink) {
        // A log error is reported at the end; the result is valid and sent all the same.
        let _ = sink.flush();
        let is_sent = lock(self.0).answer(call.turn, &answer);
        if is_sent {
            let _ = sink.emit(&[Event::ResultWritten { call }]);
        }
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}

/// Passes all events on to the sinks of the session, and tells the client how far its calls are.
pub(crate) struct ProgressSink<'c> {
    sinks: &'c mut RunSinks,
    connection: &'c Mutex<ClientConnection>,
    mask: &'c Mask,
}

impl<'c> ProgressSink<'c> {
    pub(crate) fn new(
        sinks: &'c mut RunSinks,
        connection: &'c Mutex<ClientConnection>,
        mask: &'c Mask,
    ) -> Self {
        Self {
            sinks,
            connection,
            mask,
        }
    }

    fn report(&self, event: &Event<'_>) {
        match event {
            Event::Status {
                call,
                message,
                progress,
                ..
            } if message.is_some() || progress.is_some() => {
                let message = message.map(|message| self.mask.apply(message));
                lock(self.connection).report_progress(call, *progress, message.as_deref());
            }
            Event::AgentProgress {
                call,
                turn,
                max_turns,
                ..
            } => {
                let message = format!("turn {turn} of at most {max_turns}");
                lock(self.connection).report_progress(call, None, Some(&message));
            }
            _ => {}
        }
    }
}

impl EventSink for ProgressSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let result = self.sinks.emit(events);
        for event in events {
            self.report(event);
        }
        result
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        self.sinks.flush()
    }
}
