//! Collects the results of a message, in the format of the message.

use std::collections::HashMap;
use std::mem;

use toolq_core::answer;
use toolq_core::types::{AnswerForm, CallAnswer, CallRef, EventSink, InputLayout};
use toolq_engine::AnswerDelivery;

use crate::embed::reply::{CallResult, Reply};

/// How calls ended, by turn and position.
pub(crate) type CallStatuses = HashMap<(usize, usize), &'static str>;

/// Collects answers until a JSON value is complete: one for each line of a JSONL input, one for any other input.
pub(crate) struct ReplyCollector {
    layout: InputLayout,
    form: AnswerForm,
    /// Turns that the current JSON value still waits for.
    turns_left: usize,
    answers: Vec<CallAnswer>,
    /// Turn and position of each result.
    places: Vec<(usize, usize)>,
    reply: Reply,
}

impl ReplyCollector {
    /// Collects the results of `turns` turns.
    pub(crate) fn new(layout: InputLayout, turns: usize) -> Self {
        Self {
            layout,
            form: AnswerForm::Message,
            turns_left: turns,
            answers: Vec::new(),
            places: Vec::new(),
            reply: Reply::default(),
        }
    }

    /// Sets the format of the results of the next turn.
    pub(crate) fn begin_turn(&mut self, form: AnswerForm) {
        self.form = form;
    }

    /// Adds the empty list that answers a line without calls.
    pub(crate) fn push_empty_list(&mut self) {
        if self.layout == InputLayout::Lines {
            self.reply.push_json("[]");
        }
    }

    /// Sets how the calls of the last turn ended.
    pub(crate) fn set_statuses(&mut self, statuses: &CallStatuses) {
        for (place, result) in self.places.iter().zip(&mut self.reply.results) {
            if let Some(status) = statuses.get(place) {
                result.status = status;
            }
        }
    }

    pub(crate) fn into_reply(self) -> Reply {
        self.reply
    }
}

impl AnswerDelivery for ReplyCollector {
    fn deliver(&mut self, call: &CallRef, answer: CallAnswer, _: &mut dyn EventSink) {
        self.places.push((call.turn, call.position));
        self.reply.results.push(CallResult::new(&answer));
        self.answers.push(answer);
    }

    fn finish_turn(&mut self, sink: &mut dyn EventSink) {
        self.turns_left = self.turns_left.saturating_sub(1);
        if self.layout == InputLayout::Document && self.turns_left > 0 {
            return;
        }
        // If the log failed, `close` reports it. The results are still valid.
        let _ = sink.flush();
        let answers = mem::take(&mut self.answers);
        self.reply
            .push_json(&answer::render_answers(self.form, &answers));
    }
}
