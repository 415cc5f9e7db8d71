//! Collects the events of a stream into turns, for callers that wait for its end.

use crate::transcript::input_error::InputError;
use crate::transcript::stream::event::StreamEvent;
use crate::types::{AnswerForm, Call, Turn, TurnOrigin};

/// Returns the turns of all complete messages, and the error that aborted the stream, if any.
pub fn collect_turns(
    events: impl IntoIterator<Item = StreamEvent>,
) -> (Vec<Turn>, Option<InputError>) {
    let mut turns = Vec::new();
    let mut calls: Vec<Call> = Vec::new();
    // The form doesn't matter for a message without calls.
    let mut message_form = AnswerForm::Message;
    for event in events {
        match event {
            StreamEvent::CallStarted { form, .. } => message_form = form,
            StreamEvent::PartialInput(_) => {}
            StreamEvent::CallComplete(call) => calls.push(call),
            StreamEvent::MessageEnd { turn, ending } => turns.push(Turn {
                number: turn,
                calls: std::mem::take(&mut calls),
                answered_count: 0,
                answer_form: message_form,
                ending,
                started_positions: Vec::new(),
                in_doubt_positions: Vec::new(),
                origin: TurnOrigin::default(),
            }),
            StreamEvent::Aborted { error, .. } => return (turns, Some(error)),
        }
    }
    (turns, None)
}
