//! What makes it uncertain what was sent: from the call on that this is about, no call of the message runs.

use crate::transcript::input_source::InputError;
use crate::transcript::stream::call_input::Arrival;
use crate::transcript::stream::message_record::{Block, PartialCall, StreamEvent};
use crate::transcript::stream::messages::{Messages, OpenMessage, TWO_INPUTS};
use crate::types::{Dialect, ResponseEnding};

impl OpenMessage {
    /// Returns the position of the first call of which not all is known.
    fn first_uncertain(&self) -> Option<usize> {
        let is_uncertain =
            |block: &&Block| !block.is_complete || block.input.arrival() == Arrival::Nothing;
        let mut calls = self.blocks.iter().filter(|block| block.is_call());
        calls.find(is_uncertain).map(|block| block.position)
    }

    /// Removes what turned out to be pieces of other calls, with which the message was broken.
    pub(super) fn drop_pieces(&mut self) {
        self.blocks.retain(|block| !block.may_be_piece);
        let mut calls = 0;
        for block in &mut self.blocks {
            block.position = calls;
            calls += usize::from(block.is_call());
        }
    }

    /// Returns whether a block's input can have no piece of another: no other block was open at the same time, or an event had the
    /// whole input.
    fn is_apart(&self, number: usize) -> bool {
        let block = &self.blocks[number];
        let next = self.blocks.get(number + 1);
        let is_alone = block.group == number && next.is_none_or(|next| next.group != number);
        is_alone || block.input.is_given_whole()
    }

    /// Returns whether an input is what the model sent, even if it's no valid JSON: its end has come, and it has all of its own
    /// pieces.
    fn is_settled(&self, number: usize) -> bool {
        let block = &self.blocks[number];
        block.is_complete && self.is_apart(number) && !block.input.contradicts_itself()
    }

    /// Returns why pieces of an input may be missing, or in another one.
    fn find_fault(&self, number: usize) -> Option<&'static str> {
        let block = &self.blocks[number];
        let arrival = block.input.arrival();
        match arrival {
            Arrival::Nothing => (block.is_call() && self.dialect == Dialect::OpenAiResponses)
                .then_some("its input never came"),
            _ if block.is_call() && block.name.is_none() => {
                Some("pieces of an input belong to a call without a name")
            }
            _ if self.is_settled(number) => None,
            _ if block.input.contradicts_itself() => Some(TWO_INPUTS),
            Arrival::Part => Some("its input never came whole"),
            Arrival::TooMuch => Some("it has more than one input"),
            Arrival::Whole => (!self.is_apart(number) && !block.input.is_valid())
                .then_some("an input is mixed up with others"),
        }
    }
}

impl Messages {
    /// Makes it uncertain what was sent from this block on, and from those before it that it may have been mixed up with: the ones
    /// of its group, and those of which not all is known.
    pub fn break_at(&mut self, number: usize, why: &str) {
        let Some(message) = &self.open else {
            return;
        };
        let Some(block) = message.blocks.get(number) else {
            return;
        };
        let position = |number: usize| message.blocks[number].position;
        let first = match message.broken_from {
            Some(known) if known <= block.position => return,
            // Before that, all is known.
            Some(_) => position(number),
            None => {
                let first = message.first_uncertain().unwrap_or(position(number));
                first.min(position(number))
            }
        };
        let mut group = block.group..number;
        let mixed = group.find(|&earlier| !message.is_settled(earlier));
        let first = mixed.map_or(first, |mixed| position(mixed).min(first));
        self.break_from(first, why);
    }

    /// Makes it uncertain what was sent from the first call on of which not all is known.
    pub fn break_uncertain(&mut self, why: &str) {
        let Some(message) = &self.open else {
            return;
        };
        if message.broken_from.is_none() {
            let first = message.first_uncertain().unwrap_or(message.call_count);
            self.break_from(first, why);
        }
    }

    fn break_from(&mut self, first: usize, why: &str) {
        let turn = self.turn();
        let Some(message) = &mut self.open else {
            return;
        };
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
        let broken = StreamEvent::Broken { turn, first, error };
        if message.has_started {
            self.events.push_back(broken);
        } else {
            message.held_events.push(broken);
        }
    }

    /// Judges the inputs of blocks whose group has no open block anymore. At the end of the message, that is all of them; `ending`
    /// says how it ended.
    pub(super) fn judge_inputs(&mut self, ending: Option<ResponseEnding>) {
        while let Some(message) = &mut self.open
            && let number = message.judged_blocks
            && let Some(block) = message.blocks.get(number)
            && (ending.is_some() || message.open_blocks == 0 || block.group < message.last_group)
        {
            message.judged_blocks += 1;
            let is_last = message.judged_blocks == message.blocks.len();
            let is_cut_off = is_last && ending == Some(ResponseEnding::CutOff);
            if let Some(why) = message.find_fault(number).filter(|_| !is_cut_off) {
                self.break_at(number, why);
            }
        }
    }
}

// What is reported of the calls of a message: that they have started, what has arrived, and that they are complete.

impl Messages {
    /// Reports that a call has started, unless it may be a piece of another one.
    pub(super) fn report_start(&mut self, number: usize) {
        let turn = self.turn();
        if let Some(message) = &mut self.open
            && message
                .blocks
                .get(number)
                .is_some_and(|block| !block.may_be_piece)
        {
            let (form, origin) = (message.form, message.origin.clone());
            message.has_started = true;
            let started = StreamEvent::CallStarted { turn, form, origin };
            self.events.push_back(started);
            self.events.extend(message.held_events.drain(..));
        }
    }

    /// Records that a block has an id or a name.
    pub(super) fn name_block(&mut self, number: usize) {
        if let Some(message) = &mut self.open
            && let Some(block) = message.blocks.get_mut(number)
            && block.may_be_piece
        {
            block.may_be_piece = false;
            message.unnamed_blocks -= 1;
            self.report_start(number);
        }
    }

    /// Reports the calls that are certain, in call order. One that had no piece is so only at the end of its message.
    pub(super) fn report_calls(&mut self, at_end: bool) {
        let turn = self.turn();
        let Some(message) = &mut self.open else {
            return;
        };
        while let Some(block) = message.blocks.get(message.reported_blocks) {
            let is_certain = message.is_settled(message.reported_blocks)
                || message.judged_blocks > message.reported_blocks;
            let has_input = block.input.arrival() != Arrival::Nothing;
            if block.is_call() && !at_end && !(is_certain && has_input) {
                return;
            }
            message.reported_blocks += 1;
            if block.is_call() {
                let call = block.to_call(turn);
                self.events.push_back(StreamEvent::CallComplete(call));
            }
        }
    }

    pub(super) fn report_growth(&mut self, number: usize) {
        let turn = self.turn();
        // Its position isn't certain as long as a block before it may be no call.
        let is_certain = self
            .open
            .as_ref()
            .is_some_and(|message| message.unnamed_blocks == 0);
        let Some(block) = self.block_mut(number).filter(|_| is_certain) else {
            return;
        };
        // Without an id or a name, there is nothing to report it under.
        let (Some(id), Some(name)) = (block.id.text(), block.name.clone()) else {
            return;
        };
        let id = id.to_owned();
        let position = block.position;
        if let Some(input_so_far) = block.input.take_growth() {
            self.events
                .push_back(StreamEvent::PartialInput(PartialCall {
                    turn,
                    position,
                    id,
                    name,
                    input_so_far,
                }));
        }
    }
}
