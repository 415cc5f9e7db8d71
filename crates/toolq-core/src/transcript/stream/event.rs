use crate::transcript::error::InputError;
use crate::types::{Call, Form};

/// What a stream tells, in its order. Of calls it is told in call order.
#[derive(Debug, Clone)]
pub enum Told {
    /// A call begins in the message of this number.
    Begun {
        /// Counted from 0 among the messages of the stream, those without calls included.
        turn: usize,
        /// The form in which the message asks, and so the form of its answer.
        form: Form,
    },
    /// More is known of the input of a call.
    Part(Part),
    /// A call is whole. Whether the message was cut off inside it is not known yet.
    Whole(Call),
    /// A message is over.
    Closed {
        /// Its number.
        turn: usize,
        /// It ended at a token limit, and its last block is a call.
        cut_off: bool,
    },
    /// The stream can't be read on. Nothing follows.
    Broke {
        /// The calls that had begun and were not told to be whole.
        unfinished: Vec<Call>,
        /// Why, and where.
        error: InputError,
    },
}

/// A call that is arriving.
#[derive(Debug, Clone)]
pub struct Part {
    /// The number of its message.
    pub turn: usize,
    /// Counted from 0 among the calls of its message.
    pub position: usize,
    /// Its id.
    pub id: String,
    /// The name that it asks for.
    pub name: String,
    /// The JSON of its input as far as it is there; [`completed`] makes a value of it.
    pub text: String,
}
