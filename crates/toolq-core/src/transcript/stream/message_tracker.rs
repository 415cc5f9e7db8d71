//! Tracks the messages of a stream. The reader of a dialect opens a message, starts calls in it, adds pieces of their
//! inputs, and closes it; the tracker turns that into events, with completed calls in call order.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use crate::json::ParsedObject;
use crate::transcript::stream::block::Block;
use crate::transcript::stream::block_content::BlockContent;
use crate::transcript::stream::event::{PartialCall, StreamEvent};
use crate::transcript::stream::response_body::ResponseBody;
use crate::types::{AnswerForm, Call, Dialect, ResponseEnding, TurnOrigin};

/// The open message of a stream, and the events to emit.
#[derive(Debug, Default)]
pub(crate) struct MessageTracker {
    /// Number of messages that were opened, and of those before the stream.
    message_count: usize,
    /// Number of calls that have started, in all messages.
    call_count: usize,
    open_message: Option<OpenMessage>,
    /// Id of the last message that was closed.
    last_closed_id: Option<String>,
    pending_events: VecDeque<StreamEvent>,
    /// The body to assemble, if the stream is the response to a request. It has a single message.
    body: Option<ResponseBody>,
}

/// A message that is still arriving.
#[derive(Debug)]
struct OpenMessage {
    id: String,
    form: AnswerForm,
    origin: TurnOrigin,
    blocks: Vec<Block>,
    /// Position in `blocks` of the last block with each index.
    block_positions: HashMap<u64, usize>,
    /// Number of blocks that aren't complete.
    open_blocks: usize,
    /// Number of blocks that were searched for complete calls.
    scanned_blocks: usize,
    /// Number of calls among the blocks.
    call_count: usize,
    /// Whether it, or the last of its calls, ended at a limit.
    cut_off: bool,
    /// Whether it was refused.
    refused: bool,
}

impl OpenMessage {
    fn dialect(&self) -> Dialect {
        match self.form {
            AnswerForm::OpenAiChat => Dialect::OpenAiChat,
            AnswerForm::OpenAiResponses => Dialect::OpenAiResponses,
            _ => Dialect::Anthropic,
        }
    }
}

impl MessageTracker {
    /// Creates a tracker for the response to a request, whose body it assembles. Its message is turn `turn_number`.
    pub fn for_response(turn_number: usize) -> Self {
        Self {
            message_count: turn_number,
            body: Some(ResponseBody::default()),
            ..Self::default()
        }
    }

    /// Returns the number of messages opened so far.
    pub fn message_count(&self) -> usize {
        self.message_count
    }

    /// Returns the number of calls that have started so far.
    pub fn call_count(&self) -> usize {
        self.call_count
    }

    /// Returns whether a message is open.
    pub fn is_open(&self) -> bool {
        self.open_message.is_some() && !self.is_response_complete()
    }

    /// Returns whether this is the response to a request, and it's complete.
    pub fn is_response_complete(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.is_complete)
    }

    /// Returns the id of the open message; empty if there is none or it has no id.
    pub fn open_message_id(&self) -> &str {
        self.open_message.as_ref().map_or("", |message| &message.id)
    }

    /// Returns the id of the last message that was closed, unless it was forgotten since.
    pub fn last_closed_id(&self) -> Option<&str> {
        self.last_closed_id.as_deref()
    }

    /// Forgets the last message: later events can't belong to it.
    pub fn forget_last_closed(&mut self) {
        self.last_closed_id = None;
    }

    /// Returns the body that is assembled, if the stream is the response to a request.
    pub fn body(&self) -> Option<&ResponseBody> {
        self.body.as_ref()
    }

    /// Like [`body`](Self::body), to add to it.
    pub fn body_mut(&mut self) -> Option<&mut ResponseBody> {
        self.body.as_mut()
    }

    /// Returns the blocks of the open message.
    pub fn open_blocks(&self) -> Option<&[Block]> {
        let message = self.open_message.as_ref()?;
        Some(&message.blocks)
    }

    /// Opens a message; `id` is empty if it has none.
    pub fn open_message(&mut self, form: AnswerForm, id: String) {
        self.message_count += 1;
        self.open_message = Some(OpenMessage {
            id,
            form,
            origin: TurnOrigin::default(),
            blocks: Vec::new(),
            block_positions: HashMap::new(),
            open_blocks: 0,
            scanned_blocks: 0,
            call_count: 0,
            cut_off: false,
            refused: false,
        });
    }

    /// Sets where the open message comes from: an object that may have its `id` and `model`.
    pub fn set_origin(&mut self, header: &ParsedObject) {
        let text = |key| {
            let text = header.get_text(key).filter(|text| !text.is_empty());
            text.map(Cow::into_owned)
        };
        if let Some(message) = &mut self.open_message {
            message.origin.message_id = text("id");
            message.origin.model = text("model");
        }
    }

    /// Starts a block in the open message and returns its number. `start` is the JSON that it starts with.
    pub fn begin_block(&mut self, mut block: Block, start: &ParsedObject) -> usize {
        let turn = self.turn_number();
        let Some(message) = &mut self.open_message else {
            return 0;
        };
        if block.is_call {
            block.position = message.call_count;
            message.call_count += 1;
            self.call_count += 1;
            let (form, origin) = (message.form, message.origin.clone());
            self.pending_events
                .push_back(StreamEvent::CallStarted { turn, form, origin });
        }
        if self.body.is_some() {
            block.content = Some(Box::new(BlockContent::new(start)));
        }
        let number = message.blocks.len();
        if let Some(index) = block.index {
            message.block_positions.insert(index, number);
        }
        message.open_blocks += 1;
        message.blocks.push(block);
        number
    }

    /// Returns the number of the last block with this `index`.
    pub fn find_block(&self, index: u64) -> Option<usize> {
        let message = self.open_message.as_ref()?;
        message.block_positions.get(&index).copied()
    }

    /// Like [`find_block`](Self::find_block), unless that block isn't a call.
    pub fn find_call(&self, index: u64) -> Option<usize> {
        let number = self.find_block(index)?;
        self.open_blocks()?[number].is_call.then_some(number)
    }

    /// Returns the number of the last block.
    pub fn last_block(&self) -> Option<usize> {
        self.open_message.as_ref()?.blocks.len().checked_sub(1)
    }

    /// Returns the number of the last block if it's the only one that isn't complete.
    pub fn only_open_block(&self) -> Option<usize> {
        let message = self.open_message.as_ref()?;
        let is_open = !message.blocks.last()?.is_complete && message.open_blocks == 1;
        is_open.then_some(message.blocks.len() - 1)
    }

    /// Returns the block with this number.
    pub fn block_mut(&mut self, number: usize) -> Option<&mut Block> {
        self.open_message.as_mut()?.blocks.get_mut(number)
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
        if let Some((id, name, input_so_far)) = call.grown_input() {
            let part = PartialCall {
                turn,
                position,
                id,
                name,
                input_so_far,
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
            && let Some(block) = message.blocks.get_mut(number)
            && !block.is_complete
        {
            block.is_complete = true;
            message.open_blocks -= 1;
            self.emit_complete_calls();
        }
    }

    /// Sets whether the message ended at a limit. A later event may change it.
    pub fn set_cut_off(&mut self, cut_off: bool) {
        if let Some(message) = &mut self.open_message {
            message.cut_off = cut_off;
        }
    }

    /// Records that the open message was refused.
    pub fn mark_refused(&mut self) {
        if let Some(message) = &mut self.open_message {
            message.refused = true;
        }
    }

    /// Closes the open message. If it's a response, [`end_message`](Self::end_message) completes its calls later.
    pub fn close_message(&mut self) {
        match &mut self.body {
            Some(body) => body.is_complete |= self.open_message.is_some(),
            None => self.end_message(),
        }
    }

    /// Ends the open message: all of its calls are complete.
    pub fn end_message(&mut self) {
        for block in self
            .open_message
            .iter_mut()
            .flat_map(|message| &mut message.blocks)
        {
            block.is_complete = true;
        }
        self.emit_complete_calls();
        let turn = self.turn_number();
        let Some(message) = self.open_message.take() else {
            return;
        };
        let ends_in_call = message.blocks.last().is_some_and(|block| block.is_call);
        let ending = if message.refused {
            ResponseEnding::Refused
        } else if message.cut_off && ends_in_call {
            ResponseEnding::CutOff
        } else {
            ResponseEnding::Complete
        };
        self.pending_events
            .push_back(StreamEvent::MessageEnd { turn, ending });
        self.last_closed_id = Some(message.id);
        if let Some(body) = &mut self.body {
            body.blocks = message.blocks;
        }
    }

    /// Drops the open message and returns its calls that weren't emitted as complete.
    pub fn abort(&mut self) -> Vec<Call> {
        let turn = self.turn_number();
        let Some(message) = self.open_message.take() else {
            return Vec::new();
        };
        let dialect = message.dialect();
        let rest = message.blocks[message.scanned_blocks..].iter();
        rest.filter(|block| block.is_call)
            .map(|call| call.to_call(turn, dialect))
            .collect()
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
        let dialect = message.dialect();
        while let Some(block) = message.blocks.get_mut(message.scanned_blocks)
            && (block.is_complete || !block.is_call)
        {
            message.scanned_blocks += 1;
            if !block.is_call {
                continue;
            }
            let call = block.to_call(turn, dialect);
            self.pending_events
                .push_back(StreamEvent::CallComplete(call));
            if self.body.is_none() {
                block.drop_input();
            }
        }
    }
}
