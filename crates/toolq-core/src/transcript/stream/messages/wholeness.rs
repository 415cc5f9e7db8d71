//! What makes it uncertain what was sent: from the call on that this is about, no call of the message runs.

use crate::transcript::input_error::InputError;
use crate::transcript::stream::block::Block;
use crate::transcript::stream::call_input::Arrival;
use crate::transcript::stream::event::StreamEvent;
use crate::transcript::stream::messages::{Messages, OpenMessage};
use crate::types::{Dialect, ResponseEnding};

impl OpenMessage {
    /// Returns the position of the first call of which not all is known.
    fn first_uncertain(&self) -> Option<usize> {
        let is_uncertain =
            |block: &&Block| !block.is_complete || block.input.arrival() == Arrival::Nothing;
        let mut calls = self.blocks.iter().filter(|block| block.is_call());
        calls.find(is_uncertain).map(|block| block.position)
    }
}

impl Messages {
    /// Makes it uncertain what was sent from this block on.
    pub fn break_at(&mut self, number: usize, why: &str) {
        let Some(message) = &self.open else {
            return;
        };
        let calls_before = message
            .blocks
            .iter()
            .take(number)
            .filter(|block| block.is_call());
        let first = calls_before.count();
        self.break_from(first, why);
    }

    /// Makes it uncertain what was sent from the first call on of which not all is known.
    pub fn break_uncertain(&mut self, why: &str) {
        let Some(message) = &self.open else {
            return;
        };
        let first = message.first_uncertain().unwrap_or(message.call_count);
        self.break_from(first, why);
    }

    fn break_from(&mut self, first: usize, why: &str) {
        let turn = self.turn();
        let Some(message) = &mut self.open else {
            return;
        };
        if message.broken_from.is_some_and(|known| known <= first) {
            return;
        }
        message.broken_from = Some(first);
        let mut calls = message.blocks.iter().filter(|block| block.is_call());
        let about = calls.nth(first).map_or(String::new(), |call| {
            let name = call.name.as_deref().unwrap_or("?").escape_debug();
            format!("the call of `{name}` and those after it don't run: ")
        });
        let error = InputError {
            input_name: self.name.clone(),
            position: self.place,
            message: format!("{about}{why}"),
            hint: None,
            errno: None,
        };
        self.events
            .push_back(StreamEvent::Broken { turn, first, error });
    }

    /// Judges whether the inputs of complete calls came whole, of which that isn't known yet. At the end of the message, that is
    /// all of them; `ending` says how it ended.
    pub(super) fn judge_inputs(&mut self, ending: Option<ResponseEnding>) {
        while let Some(message) = &mut self.open
            && let number = message.judged_blocks
            && let Some(block) = message.blocks.get(number)
            && block.is_complete
        {
            message.judged_blocks += 1;
            let is_last = message.judged_blocks == message.blocks.len();
            let is_cut_off = is_last && ending == Some(ResponseEnding::CutOff);
            if !block.is_call() || is_cut_off {
                continue;
            }
            let is_broken = message
                .broken_from
                .is_some_and(|first| first <= block.position);
            match block.input.arrival() {
                _ if is_broken => {}
                Arrival::Part | Arrival::Whole if block.name.is_none() => {
                    // Its pieces may be those of another call.
                    let (position, first) = (block.position, message.first_uncertain());
                    let first = first.map_or(position, |first| first.min(position));
                    self.break_from(first, "pieces of an input belong to a call without a name");
                }
                Arrival::Nothing if message.dialect == Dialect::OpenAiResponses => {
                    self.break_at(number, "its input never came");
                }
                Arrival::Part => self.break_at(number, "its input never came whole"),
                Arrival::TooMuch => self.break_uncertain("it has more than one input"),
                Arrival::Nothing | Arrival::Whole => {}
            }
        }
    }
}
