//! A message that is still arriving: its blocks, and which of its calls were reported as complete.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::ParsedObject;
use crate::transcript::stream::block::Block;
use crate::types::{AnswerForm, Call, ResponseEnding, TurnOrigin};

/// A message that is still arriving.
#[derive(Debug)]
pub(crate) struct OpenMessage {
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
    /// Creates a message without blocks; `id` is empty if the message has no id.
    pub(crate) fn new(form: AnswerForm, id: String) -> Self {
        Self {
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
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn form(&self) -> AnswerForm {
        self.form
    }

    pub(crate) fn origin(&self) -> &TurnOrigin {
        &self.origin
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Sets where it comes from: an object that may have its `id` and `model`.
    pub(crate) fn set_origin(&mut self, header: &ParsedObject) {
        let text = |key| {
            let text = header.get_text(key).filter(|text| !text.is_empty());
            text.map(Cow::into_owned)
        };
        self.origin.message_id = text("id");
        self.origin.model = text("model");
    }

    /// Sets whether it ended at a limit. A later event may change it.
    pub(crate) fn set_cut_off(&mut self, cut_off: bool) {
        self.cut_off = cut_off;
    }

    pub(crate) fn mark_refused(&mut self) {
        self.refused = true;
    }

    /// Adds a block, which gets the next position if it is a call. Returns its number.
    pub(crate) fn push_block(&mut self, mut block: Block) -> usize {
        if block.is_call {
            block.position = self.call_count;
            self.call_count += 1;
        }
        let number = self.blocks.len();
        if let Some(index) = block.index {
            self.block_positions.insert(index, number);
        }
        self.open_blocks += 1;
        self.blocks.push(block);
        number
    }

    /// Returns the number of the last block with this `index`.
    pub(crate) fn find_block(&self, index: u64) -> Option<usize> {
        self.block_positions.get(&index).copied()
    }

    /// Returns the number of the last block if it's the only one that isn't complete.
    pub(crate) fn only_open_block(&self) -> Option<usize> {
        let is_open = !self.blocks.last()?.is_complete && self.open_blocks == 1;
        is_open.then_some(self.blocks.len() - 1)
    }

    /// Returns the block with this number.
    pub(crate) fn block_mut(&mut self, number: usize) -> Option<&mut Block> {
        self.blocks.get_mut(number)
    }

    /// Marks a block as complete. Returns whether it wasn't before.
    pub(crate) fn complete_block(&mut self, number: usize) -> bool {
        let block = self.blocks.get_mut(number);
        let Some(block) = block.filter(|block| !block.is_complete) else {
            return false;
        };
        block.is_complete = true;
        self.open_blocks -= 1;
        true
    }

    /// Marks all blocks as complete, because the message has ended.
    pub(crate) fn complete_all_blocks(&mut self) {
        for block in &mut self.blocks {
            block.is_complete = true;
        }
        self.open_blocks = 0;
    }

    /// Returns the next call in order, if it is complete, as a call of turn `turn`. Its input is dropped.
    pub(crate) fn take_complete_call(&mut self, turn: usize) -> Option<Call> {
        while let Some(block) = self.blocks.get_mut(self.scanned_blocks)
            && (block.is_complete || !block.is_call)
        {
            self.scanned_blocks += 1;
            if !block.is_call {
                continue;
            }
            let call = block.to_call(turn);
            block.drop_input();
            return Some(call);
        }
        None
    }

    /// Returns the calls that [`take_complete_call`](Self::take_complete_call) hasn't returned.
    pub(crate) fn unfinished_calls(&self, turn: usize) -> Vec<Call> {
        let rest = self.blocks[self.scanned_blocks..].iter();
        rest.filter(|block| block.is_call)
            .map(|call| call.to_call(turn))
            .collect()
    }

    /// Returns how it ended. A limit matters only if it may have cut off a call.
    pub(crate) fn ending(&self) -> ResponseEnding {
        let ends_in_call = self.blocks.last().is_some_and(|block| block.is_call);
        if self.refused {
            ResponseEnding::Refused
        } else if self.cut_off && ends_in_call {
            ResponseEnding::CutOff
        } else {
            ResponseEnding::Complete
        }
    }
}
