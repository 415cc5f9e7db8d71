//! The answer of the only call of a session.

use std::sync::Arc;

use toolq_core::types::{CallAnswer, CallRef, EventSink, ResultContent};
use toolq_engine::AnswerDelivery;

/// The answer of a single call, once it is there.
#[derive(Default)]
pub(crate) struct SingleAnswer(Option<CallAnswer>);

impl SingleAnswer {
    /// Returns the answer, if the call already has one.
    pub(crate) fn get(&self) -> Option<&CallAnswer> {
        self.0.as_ref()
    }

    /// Returns whether the call failed or has no answer.
    pub(crate) fn is_error(&self) -> bool {
        self.0.as_ref().is_none_or(|answer| answer.is_error)
    }

    /// Returns the text of the error if the call failed.
    pub(crate) fn error_text(&self) -> Option<String> {
        let answer = self.0.as_ref().filter(|answer| answer.is_error);
        answer.map(answer_text)
    }
}

impl AnswerDelivery for SingleAnswer {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink) {
        // A log error is reported at the end of the run.
        let _ = sink.flush();
        self.0 = Some(answer);
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}

/// Returns the text of an answer. Several blocks, or one that isn't text, are a JSON array.
pub(crate) fn answer_text(answer: &CallAnswer) -> String {
    match &answer.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => {
            let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
            format!("[{}]", blocks.join(","))
        }
    }
}
