//! What is reported of the calls of a message: that they have started, what has arrived, and that they are complete.

use crate::transcript::stream::call_input::Arrival;
use crate::transcript::stream::event::{PartialCall, StreamEvent};
use crate::transcript::stream::messages::Messages;

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
