//! What a stream told → turns, for those who wait for its end.

use crate::transcript::error::InputError;
use crate::transcript::stream::event::Told;
use crate::types::{Call, Form, Turn};

/// The messages that are whole; why the stream can't be read to its end, if it can't.
pub fn turns(told: impl IntoIterator<Item = Told>) -> (Vec<Turn>, Option<InputError>) {
    let mut turns = Vec::new();
    let mut calls: Vec<Call> = Vec::new();
    // Of a message without calls nobody asks in which form to answer.
    let mut asked = Form::Message;
    for told in told {
        match told {
            Told::Begun { form, .. } => asked = form,
            Told::Part(_) => {}
            Told::Whole(call) => calls.push(call),
            Told::Closed { turn, cut_off } => turns.push(Turn {
                number: turn,
                calls: std::mem::take(&mut calls),
                answered: 0,
                form: asked,
                cut_off,
                started: Vec::new(),
            }),
            Told::Broke { error, .. } => return (turns, Some(error)),
        }
    }
    (turns, None)
}
