//! Collects the results of a message, in the format of the message.

use std::collections::HashMap;

use toolq_core::answer::AnswerAssembler;
use toolq_core::types::{AnswerForm, CallAnswer, CallRef, EventSink, InputLayout, Status};
use toolq_engine::AnswerDelivery;

use crate::embed::reply::{CallResult, Reply};

/// How calls ended, by turn and position.
pub(crate) type CallStatuses = HashMap<(usize, usize), Status>;

/// Collects the results of a message.
pub(crate) struct ReplyCollector {
    assembler: AnswerAssembler,
    /// Turn and position of each result.
    places: Vec<(usize, usize)>,
    reply: Reply,
}

impl ReplyCollector {
    /// Collects the results of `turns` turns.
    pub(crate) fn new(layout: InputLayout, turns: usize) -> Self {
        Self {
            assembler: AnswerAssembler::new(None, layout, turns),
            places: Vec::new(),
            reply: Reply::default(),
        }
    }

    /// Sets the form of the next turn's results.
    pub(crate) fn begin_turn(&mut self, form: AnswerForm) {
        self.assembler.begin_turn(form);
    }

    /// Answers a line without calls.
    pub(crate) fn push_empty_list(&mut self) {
        if self.assembler.answers_empty_lines() {
            self.reply.push_json("[]");
        }
    }

    /// Adds a complete JSON value to the reply.
    fn flush_answers(&mut self, sink: &mut dyn EventSink) {
        // A log that failed reports it in the reply; the results are no less true.
        let _ = sink.flush();
        self.reply.push_json(&self.assembler.take_json());
    }

    /// Sets how the calls of the last turn ended.
    pub(crate) fn set_statuses(&mut self, statuses: &CallStatuses) {
        for (place, result) in self.places.iter().zip(&mut self.reply.results) {
            if let Some(status) = statuses.get(place) {
                result.status = status.clone();
            }
        }
    }

    pub(crate) fn into_reply(self) -> Reply {
        self.reply
    }
}

impl AnswerDelivery for ReplyCollector {
    fn deliver(&mut self, call: &CallRef, answer: CallAnswer, sink: &mut dyn EventSink) {
        self.places.push((call.turn, call.position));
        self.reply.results.push(CallResult::new(&answer));
        if self.assembler.push(answer) {
            self.flush_answers(sink);
        }
    }

    fn finish_turn(&mut self, sink: &mut dyn EventSink) {
        if self.assembler.finish_turn() {
            self.flush_answers(sink);
        }
    }
}
