//! Collects the results of a message, in the format of the message.

use std::sync::Arc;

use toolq_core::answer::AnswerAssembler;
use toolq_core::types::{AnswerForm, CallAnswer, CallRef, EventSink, InputLayout};
use toolq_engine::AnswerDelivery;

use crate::reply::{CallResult, Reply};

/// Collects the results of a message.
pub(crate) struct ReplyCollector {
    assembler: AnswerAssembler,
    reply: Reply,
}

impl ReplyCollector {
    /// Collects the results of `turns` turns.
    pub(crate) fn new(layout: InputLayout, turns: usize) -> Self {
        Self {
            assembler: AnswerAssembler::new(None, layout, turns),
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

    pub(crate) fn into_reply(self) -> Reply {
        self.reply
    }
}

impl AnswerDelivery for ReplyCollector {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink) {
        self.reply.results.push(CallResult::new(&answer));
        if self.assembler.push(answer) {
            self.reply.push_json(&self.assembler.take_json());
        }
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {
        if self.assembler.finish_turn() {
            self.reply.push_json(&self.assembler.take_json());
        }
    }
}
