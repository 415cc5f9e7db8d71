//! The calls of a response that is arriving, parsed by the same reader as those of a complete body.

use crate::json::ParsedObject;
use crate::transcript::assembly::assembler::ResponseAssembler;
use crate::transcript::build_call::build_call;
use crate::transcript::formats::dispatch;
use crate::transcript::stream::PartialCall;
use crate::types::{Api, Call, Dialect};

impl ResponseAssembler {
    /// Returns the number of calls that have started so far.
    pub fn calls_started(&self) -> usize {
        self.calls_started
    }

    /// Returns the calls whose input has grown since the last time, as calls of turn number `turn`.
    pub fn partial_calls(&mut self, turn: usize) -> Vec<PartialCall> {
        let calls = self.blocks.iter_mut().filter(|block| block.is_call);
        let calls = calls.enumerate().filter_map(|(position, block)| {
            let (id, name, input) = block.grown_input()?;
            Some(PartialCall {
                turn,
                position,
                id,
                name,
                input_so_far: input.to_owned(),
            })
        });
        calls.collect()
    }

    /// Returns the next call in call order, as a call of turn number `turn`, if it's complete. Input for it that
    /// arrives later is an error.
    pub fn next_call(&mut self, turn: usize) -> Option<Call> {
        self.take_call(turn, false)
    }

    /// Gives up on the rest of the response and returns the remaining calls, complete or not.
    pub fn abort(&mut self, turn: usize) -> Vec<Call> {
        std::iter::from_fn(|| self.take_call(turn, true)).collect()
    }

    fn take_call(&mut self, turn: usize, include_unfinished: bool) -> Option<Call> {
        loop {
            let block = self.blocks.get(self.scanned_blocks)?;
            if block.is_call && !block.is_complete && !include_unfinished {
                return None;
            }
            self.scanned_blocks += 1;
            if block.is_call {
                break;
            }
        }
        let (block, position) = (&self.blocks[self.scanned_blocks - 1], self.taken_calls);
        self.taken_calls += 1;
        let (dialect, json) = match self.api {
            Api::Anthropic => (Dialect::Anthropic, block.to_json()),
            Api::OpenAiChat => (Dialect::OpenAiChat, block.to_function_call()),
        };
        let object = ParsedObject::parse(&json).ok()??;
        let raw = dispatch::parse_call(dialect, &object);
        Some(build_call(turn, position, raw, object.json()))
    }
}
