//! The events of a stream.

use crate::transcript::input_error::InputError;
use crate::types::{AnswerForm, Call, ResponseEnding, TurnOrigin};

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
