//! The events of a stream.

use crate::transcript::input_error::InputError;
use crate::types::{AnswerForm, Call, ResponseEnding, Turn, TurnOrigin};

/// What has become known of a stream. Completed calls are reported in call order.
#[derive(Debug, Clone)]
pub enum StreamEvent {
    /// A call started.
    CallStarted {
        /// Number of its message, counted from 0 among all messages of the stream, even those without calls.
        turn: usize,
        /// The form that the results of this message will have.
        form: AnswerForm,
        /// Where its message comes from, as far as the message has said so.
        origin: TurnOrigin,
    },
    /// More of a call's input arrived.
    PartialInput(PartialCall),
    /// A call is complete. It isn't known yet whether the message was cut off inside it.
    CallComplete(Call),
    /// The pieces of a message don't fit together: from a call on, it isn't certain what was sent.
    Broken {
        /// Number of the message.
        turn: usize,
        /// The position of that call, which may be one that has yet to arrive.
        first: usize,
        /// What doesn't fit, and where.
        error: InputError,
    },
    /// A message ended.
    MessageEnd {
        /// Number of the message.
        turn: usize,
        /// How it ended.
        ending: ResponseEnding,
    },
    /// The rest of the stream can't be read. This is the last event.
    Aborted {
        /// Calls that started and weren't reported as complete.
        unfinished_calls: Vec<Call>,
        /// What went wrong, and where.
        error: InputError,
    },
}

/// A call whose input is still arriving.
#[derive(Debug, Clone)]
pub struct PartialCall {
    /// Number of its message.
    pub turn: usize,
    /// Position among the calls of its message, counted from 0.
    pub position: usize,
    /// Its id.
    pub id: String,
    /// Name of the tool that it calls.
    pub name: String,
    /// The JSON of its input so far, to be completed with
    /// [`complete_partial_json`](crate::transcript::complete_partial_json).
    pub input_so_far: String,
}

/// Returns the turns of all complete messages, and the first error in them, or that aborted the stream, if any. For callers
/// that wait for the end of a stream.
pub fn collect_turns(
    events: impl IntoIterator<Item = StreamEvent>,
) -> (Vec<Turn>, Option<InputError>) {
    let mut turns = Vec::new();
    // The form doesn't matter for a message without calls.
    let mut turn = Turn::of_calls(0, Vec::new(), AnswerForm::Message);
    let mut first_error = None;
    for event in events {
        match event {
            StreamEvent::CallStarted { form, .. } => turn.answer_form = form,
            StreamEvent::PartialInput(_) => {}
            StreamEvent::CallComplete(call) => turn.calls.push(call),
            StreamEvent::Broken { first, error, .. } => {
                turn.broken_from = Some(first);
                first_error.get_or_insert(error);
            }
            StreamEvent::MessageEnd {
                turn: number,
                ending,
            } => {
                let next = Turn::of_calls(0, Vec::new(), turn.answer_form);
                let ended = std::mem::replace(&mut turn, next);
                turns.push(Turn {
                    number,
                    ending,
                    ..ended
                });
            }
            StreamEvent::Aborted { error, .. } => {
                first_error.get_or_insert(error);
            }
        }
    }
    (turns, first_error)
}
