//! Tracks the messages of a stream. The reader of a dialect opens a message, starts calls in it, adds pieces of their
//! inputs, and closes it; the tracker turns that into events, with completed calls in call order.

use std::collections::VecDeque;

use crate::json::ParsedObject;
use crate::transcript::stream::block::Block;
use crate::transcript::stream::event::{PartialCall, StreamEvent};
use crate::transcript::stream::open_message::OpenMessage;
use crate::types::{AnswerForm, Call};

/// The open message of a stream, and the events to emit.
#[derive(Debug, Default)]
pub(crate) struct MessageTracker {
    /// Number of messages that were opened, and of those before the stream.
    message_count: usize,
    open_message: Option<OpenMessage>,
    /// Id of the last message that was closed.
    last_closed_id: Option<String>,
    pending_events: VecDeque<StreamEvent>,
}

impl MessageTracker {
    /// Returns the number of messages opened so far.
    pub fn message_count(&self) -> usize {
        self.message_count
    }

    /// Returns whether a message is open.
    pub fn is_open(&self) -> bool {
        self.open_message.is_some()
    }

    /// Returns the id of the open message; empty if no message is open or it has no id.
    pub fn open_message_id(&self) -> &str {
        self.open_message.as_ref().map_or("", OpenMessage::id)
    }

    /// Returns the id of the last message that was closed, unless it was forgotten since.
    pub fn last_closed_id(&self) -> Option<&str> {
        self.last_closed_id.as_deref()
    }

    /// Forgets the last message: later events can't belong to it.
    pub fn forget_last_closed(&mut self) {
        self.last_closed_id = None;
    }

    /// Returns the blocks of the open message.
    fn open_blocks(&self) -> Option<&[Block]> {
        self.open_message.as_ref().map(OpenMessage::blocks)
    }

    /// Opens a message; `id` is empty if the message has no id.
    pub fn open_message(&mut self, form: AnswerForm, id: String) {
        self.message_count += 1;
        self.open_message = Some(OpenMessage::new(form, id));
    }

    /// Sets where the open message comes from: an object that may have its `id` and `model`.
    pub fn set_origin(&mut self, header: &ParsedObject) {
        if let Some(message) = &mut self.open_message {
            message.set_origin(header);
        }
    }

    /// Starts a block in the open message and returns its number.
    pub fn begin_block(&mut self, block: Block) -> usize {
        let turn = self.turn_number();
        let Some(message) = &mut self.open_message else {
            return 0;
        };
        if block.is_call {
            let (form, origin) = (message.form(), message.origin().clone());
            self.pending_events
                .push_back(StreamEvent::CallStarted { turn, form, origin });
        }
        message.push_block(block)
    }

    /// Returns the number of the last block with this `index`.
    pub fn find_block(&self, index: u64) -> Option<usize> {
        self.open_message.as_ref()?.find_block(index)
    }

    /// Like [`find_block`](Self::find_block), unless that block isn't a call.
    pub fn find_call(&self, index: u64) -> Option<usize> {
        let number = self.find_block(index)?;
        self.open_blocks()?[number].is_call.then_some(number)
    }

    /// Returns the number of the last block.
    pub fn last_block(&self) -> Option<usize> {
        self.open_blocks()?.len().checked_sub(1)
    }

    /// Returns the number of the last block if it's the only one that isn't complete.
    pub fn only_open_block(&self) -> Option<usize> {
        self.open_message.as_ref()?.only_open_block()
    }

    /// Returns the block with this number.
    pub fn block_mut(&mut self, number: usize) -> Option<&mut Block> {
        self.open_message.as_mut()?.block_mut(number)
    }

    /// Like [`block_mut`](Self::block_mut), for a block that is a call.
    pub fn call_mut(&mut self, number: usize) -> Option<&mut Block> {
        self.block_mut(number).filter(|block| block.is_call)
    }

    /// Adds the next piece of a call's input. Returns `false` if the call was already complete.
    #[must_use]
    pub fn add_piece(&mut self, number: usize, piece: &str) -> bool {
        let turn = self.turn_number();
        let Some(call) = self.call_mut(number) else {
            return true;
        };
        if !call.append_input(piece) {
            return false;
        }
        let position = call.position;
        if let Some(grown) = call.grown_input() {
            let part = PartialCall {
                turn,
                position,
                id: grown.id,
                name: grown.name,
                input_so_far: grown.input_so_far,
            };
            self.pending_events
                .push_back(StreamEvent::PartialInput(part));
        }
        true
    }

    /// Replaces an input by its complete text, unless the call is already complete.
    pub fn replace_input(&mut self, number: usize, text: &str) {
        if let Some(call) = self.call_mut(number).filter(|call| !call.is_complete) {
            call.replace_input(text);
        }
    }

    /// Marks a block as complete.
    pub fn complete_block(&mut self, number: usize) {
        if let Some(message) = &mut self.open_message
            && message.complete_block(number)
        {
            self.emit_complete_calls();
        }
    }

    /// Sets whether the message ended at a limit. A later event may change it.
    pub fn set_cut_off(&mut self, cut_off: bool) {
        if let Some(message) = &mut self.open_message {
            message.set_cut_off(cut_off);
        }
    }

    /// Records that the open message was refused.
    pub fn mark_refused(&mut self) {
        if let Some(message) = &mut self.open_message {
            message.mark_refused();
        }
    }

    /// Ends the open message: all of its calls are complete.
    pub fn end_message(&mut self) {
        if let Some(message) = &mut self.open_message {
            message.complete_all_blocks();
        }
        self.emit_complete_calls();
        let turn = self.turn_number();
        let Some(message) = self.open_message.take() else {
            return;
        };
        let ending = message.ending();
        self.pending_events
            .push_back(StreamEvent::MessageEnd { turn, ending });
        self.last_closed_id = Some(message.id().to_owned());
    }

    /// Drops the open message and returns its calls that weren't emitted as complete.
    pub fn abort(&mut self) -> Vec<Call> {
        let turn = self.turn_number();
        let message = self.open_message.take();
        message.map_or_else(Vec::new, |message| message.unfinished_calls(turn))
    }

    /// Returns the next event to emit.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        self.pending_events.pop_front()
    }

    /// Returns the number of the open message.
    fn turn_number(&self) -> usize {
        self.message_count.saturating_sub(1)
    }

    /// Emits the calls that are complete, in call order.
    fn emit_complete_calls(&mut self) {
        let turn = self.turn_number();
        let Some(message) = &mut self.open_message else {
            return;
        };
        while let Some(call) = message.take_complete_call(turn) {
            self.pending_events
                .push_back(StreamEvent::CallComplete(call));
        }
    }
}
