//! The calls of an answer that is arriving, read by the same reader as those of the body that it adds up to.

use crate::json::Object;
use crate::transcript::assembly::body::Assembly;
use crate::transcript::formats::dispatch;
use crate::transcript::ids::finish;
use crate::types::{Api, Call, Dialect};

impl Assembly {
    /// How many calls have begun so far.
    pub fn calls_begun(&self) -> usize {
        self.begun
    }

    /// The next call in call order, once it is whole, in the turn of this number. A piece of it that comes later is an
    /// error.
    pub fn next_call(&mut self, turn: usize) -> Option<Call> {
        self.take_call(turn, false)
    }

    /// The calls that are left when no more comes of the answer, whole or not.
    pub fn abandon(&mut self, turn: usize) -> Vec<Call> {
        std::iter::from_fn(|| self.take_call(turn, true)).collect()
    }

    fn take_call(&mut self, turn: usize, unfinished: bool) -> Option<Call> {
        loop {
            let block = self.blocks.get(self.seen)?;
            if block.is_use && !block.whole && !unfinished {
                return None;
            }
            self.seen += 1;
            if block.is_use {
                break;
            }
        }
        let (block, position) = (&self.blocks[self.seen - 1], self.taken);
        self.taken += 1;
        let (dialect, json) = match self.api {
            Api::Anthropic => (Dialect::Anthropic, block.json()),
            Api::OpenAiChat => (Dialect::OpenAiChat, block.function_call()),
        };
        let object = Object::read(&json).ok()??;
        let asked = dispatch::asked(dialect, &object);
        Some(finish(turn, position, asked, object.json()))
    }
}
