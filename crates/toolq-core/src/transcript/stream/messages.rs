//! The messages of a stream as they arrive: a state machine that every piece must fit.
//!
//! The decoders of the vendors translate their events into its few operations. Whatever doesn't fit makes it uncertain what was
//! sent: then the call that this is about doesn't run, nor does any after it.

mod wholeness;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use crate::json::{InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::{MESSAGE_ID_KEYS, MODEL_KEYS};
use crate::transcript::input_source::LineCol;
use crate::transcript::reply_pairing::{UnknownKinds, add_kinds};
use crate::transcript::stream::call_input::{Arrival, CallInput};
use crate::transcript::stream::message_record::{Block, BlockKind, MessageRecord, StreamEvent};
use crate::types::{AnswerForm, Call, CallKind, Dialect, ResponseEnding, TurnOrigin};

/// What is said where a call has two different inputs.
const TWO_INPUTS: &str = "it has two different inputs";
/// What is said where a piece of an input doesn't stand under its key.
pub(crate) const UNCLEAR_INPUT: &str = "what may be a piece of its input isn't where it should be";

/// The messages of a stream: the open one, and the events that are to be reported.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Number of messages so far.
    count: usize,
    open: Option<OpenMessage>,
    /// The id of the last message that was closed, unless it can't go on anymore.
    pub last_closed_id: Option<String>,
    events: VecDeque<StreamEvent>,
    /// The display name of the stream.
    name: String,
    /// Where the event is that is being read.
    pub place: Option<LineCol>,
    /// The alternative of the open message that has calls, and the last one that has ended.
    pub choice: Option<u64>,
    pub stopped_choice: Option<u64>,
    /// Kinds of blocks that toolq doesn't know, each with whether it looks like a call.
    pub unknown_kinds: UnknownKinds,
    /// What messages amount to is kept.
    pub keeps_records: bool,
    /// What closed messages amount to.
    pub records: Vec<String>,
}

/// A message that is still arriving.
#[derive(Debug, Default)]
struct OpenMessage {
    dialect: Dialect,
    form: AnswerForm,
    id: String,
    origin: TurnOrigin,
    blocks: Vec<Block>,
    /// Position in `blocks` of the last block with each index, and with each key.
    by_index: HashMap<u64, usize>,
    by_key: HashMap<String, usize>,
    /// Position in `blocks` of the last call with each id.
    by_call_id: HashMap<String, usize>,
    call_count: usize,
    /// Number of blocks that may be pieces of another call.
    unnamed_blocks: usize,
    /// Its first call was reported. Until then, nobody asks what doesn't fit.
    has_started: bool,
    held_events: Vec<StreamEvent>,
    /// It is what arrives after the end of a message: its calls don't run.
    is_late: bool,
    /// Number of blocks that aren't complete.
    open_blocks: usize,
    /// Number of blocks that were reported.
    reported_blocks: usize,
    /// Number of blocks of which it was judged whether their inputs came whole.
    judged_blocks: usize,
    /// Number of the block with which the last group begins.
    last_group: usize,
    /// From this call on, it isn't certain what was sent.
    broken_from: Option<usize>,
    ending: ResponseEnding,
    /// It has said why it ends.
    has_stopped: bool,
    record: Option<MessageRecord>,
}

impl Messages {
    /// Creates the messages of the stream called `name`.
    pub fn new(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Returns the number of messages so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the id of the open message, or `None` if none is open. It is empty if the message has no id.
    pub fn open_id(&self) -> Option<&str> {
        Some(&self.open.as_ref()?.id)
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether the open message has said why it ends.
    pub fn has_stopped(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|message| message.has_stopped)
    }

    /// Returns whether the open message has calls.
    pub fn has_calls(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|message| message.call_count > 0)
    }

    /// Returns whether the open message has calls of which not all is known: without a piece of an input, or a name.
    pub fn has_uncertain_calls(&self) -> bool {
        self.open.as_ref().is_some_and(|message| {
            let mut calls = message.blocks.iter().filter(|block| block.is_call());
            calls.any(|call| call.name.is_none() || call.input.arrival() == Arrival::Nothing)
        })
    }

    /// Opens a message. `header` may have its id and model.
    pub fn open(&mut self, dialect: Dialect, form: AnswerForm, header: Option<&ParsedObject>) {
        let text = |keys: [&str; 2]| {
            let texts = keys.iter().filter_map(|key| header?.get_text(key));
            texts.map(Cow::into_owned).find(|text| !text.is_empty())
        };
        let origin = TurnOrigin {
            message_id: text(MESSAGE_ID_KEYS),
            model: text(MODEL_KEYS),
            ..TurnOrigin::default()
        };
        self.count += 1;
        (self.choice, self.stopped_choice) = (None, None);
        self.open = Some(OpenMessage {
            dialect,
            form,
            id: origin.message_id.clone().unwrap_or_default(),
            origin,
            record: self.keeps_records.then(MessageRecord::default),
            ..OpenMessage::default()
        });
    }

    /// Returns whether a message has ended, and none is open.
    pub fn can_be_late(&self) -> bool {
        self.count > 0 && self.open.is_none()
    }

    /// Opens a message of calls that arrive after the end of theirs, so that they get results.
    pub fn open_late(&mut self, dialect: Dialect, form: AnswerForm, header: Option<&ParsedObject>) {
        self.open(dialect, form, header);
        self.mark_late();
    }

    /// Records that the calls that follow arrive after the end of their message.
    pub fn mark_late(&mut self) {
        if let Some(message) = &mut self.open {
            message.is_late = true;
            message.has_stopped = true;
        }
    }

    /// Returns what goes back to the API, if that is kept.
    pub fn record(&mut self) -> Option<&mut MessageRecord> {
        self.open.as_mut()?.record.as_mut()
    }

    /// Returns the number of the last block with this index.
    pub fn find_index(&self, index: u64) -> Option<usize> {
        self.open.as_ref()?.by_index.get(&index).copied()
    }

    /// Returns the number of the last block with this key.
    pub fn find_key(&self, key: &str) -> Option<usize> {
        self.open.as_ref()?.by_key.get(key).copied()
    }

    /// Returns the number of the last call with this id.
    pub fn find_call_id(&self, id: &str) -> Option<usize> {
        self.open.as_ref()?.by_call_id.get(id).copied()
    }

    /// Lets a call be found under this id.
    pub fn add_call_id(&mut self, number: usize, id: &str) {
        if let Some(message) = &mut self.open {
            message.by_call_id.insert(id.to_owned(), number);
        }
    }

    /// Records that a message has a block of a kind that toolq doesn't run; `is_call` says whether it looks like a call.
    pub fn add_unknown_kind(&mut self, kind: &str, is_call: bool) {
        add_kinds(&mut self.unknown_kinds, [(kind.to_owned(), is_call)]);
    }

    /// Returns the number of the block that isn't complete, if there is just one.
    pub fn only_open_block(&self) -> Option<usize> {
        let message = self
            .open
            .as_ref()
            .filter(|message| message.open_blocks == 1)?;
        message.blocks.iter().rposition(|block| !block.is_complete)
    }

    /// Returns the number of the last block.
    pub fn last_block(&self) -> Option<usize> {
        self.open.as_ref()?.blocks.len().checked_sub(1)
    }

    pub fn block(&self, number: usize) -> Option<&Block> {
        self.open.as_ref()?.blocks.get(number)
    }

    pub fn block_mut(&mut self, number: usize) -> Option<&mut Block> {
        self.open.as_mut()?.blocks.get_mut(number)
    }

    /// Begins a block and returns its number. `start` is the JSON that it begins with.
    pub fn begin(&mut self, mut block: Block, start: &ParsedObject) -> usize {
        self.judge_inputs(None);
        let replaced = block.index.and_then(|index| self.find_index(index));
        // Without a key, only the index leads to it.
        let is_cut = |known: &Block| {
            let is_whole = known.input.arrival() == Arrival::Whole;
            known.is_call() && known.key.is_none() && !known.is_complete && !is_whole
        };
        if let Some(number) = replaced.filter(|number| self.block(*number).is_some_and(is_cut)) {
            self.break_at(
                number,
                "another block takes its place before its input came whole",
            );
        }
        let Some(message) = &mut self.open else {
            return 0;
        };
        if message.record.is_some() {
            block.keep_record(start);
        }
        let number = message.blocks.len();
        if message.open_blocks == 0 {
            message.last_group = number;
        }
        block.group = message.last_group;
        block.position = message.call_count;
        let is_call = block.is_call();
        message.call_count += usize::from(is_call);
        message.unnamed_blocks += usize::from(block.may_be_piece);
        let is_late = message.is_late;
        message
            .by_index
            .extend(block.index.map(|index| (index, number)));
        message
            .by_key
            .extend(block.key.clone().map(|key| (key, number)));
        message
            .by_call_id
            .extend(block.id.text().map(|id| (id.to_owned(), number)));
        message.open_blocks += 1;
        message.blocks.push(block);
        if is_call {
            self.report_start(number);
        }
        if is_call && is_late {
            self.break_at(number, "a call after the end of its message");
        }
        self.report_calls(false);
        number
    }

    /// Adds a piece of an input to the block with this number; `None` if it fits none. An empty piece means nothing.
    pub fn add_piece(&mut self, number: Option<usize>, piece: JsonText) {
        if piece.get() == "\"\"" {
            return;
        }
        let Some((number, block)) =
            number.and_then(|number| Some((number, self.block_mut(number)?)))
        else {
            return self.break_uncertain("a piece of an input belongs to no block");
        };
        match block.kind {
            BlockKind::Other => {
                self.break_uncertain("a piece of an input belongs to a block that has none");
            }
            _ if block.is_complete => {
                if piece.to_text().is_none_or(|text| !text.trim().is_empty()) {
                    self.break_at(number, "more of its input arrives after its end");
                }
            }
            _ => match block.input.add_piece(piece) {
                Ok(()) => self.report_growth(number),
                Err(fault) => {
                    block.fault.get_or_insert(fault);
                    self.break_at(number, "a character of its input is only half there");
                }
            },
        }
    }

    /// Adds a piece of an input that is JSON of its own.
    pub fn add_json_piece(&mut self, number: usize, piece: JsonText) {
        let Some(block) = self.block_mut(number) else {
            return;
        };
        if block.is_complete {
            self.break_at(number, "more of its input arrives after its end");
        } else {
            block.input.add_json(piece.get());
            self.report_growth(number);
        }
    }

    /// Sets the whole input of a call, as one of its last events has it.
    pub fn set_input(&mut self, number: usize, input: JsonText) {
        let Some(block) = self.block_mut(number).filter(|block| block.is_call()) else {
            return;
        };
        let text = if input.kind() == JsonKind::String {
            input.to_text()
        } else {
            Some(input.get().into())
        };
        let Some(text) = text else {
            block.fault = Some(InvalidInput::NotJson("a lone surrogate".to_owned()));
            return self.break_at(number, "a character of its input is only half there");
        };
        if !block.input.set_last(&text) {
            self.break_at(number, TWO_INPUTS);
        }
    }

    /// Takes a call's beginning that is sent again, with this input.
    pub fn begin_again(&mut self, number: usize, input: CallInput) {
        let block = self.block_mut(number);
        if block.is_some_and(|block| !block.input.begins_again(input)) {
            self.break_at(number, TWO_INPUTS);
        }
    }

    /// Sets the name of a call. Empty names mean nothing.
    pub fn set_name(&mut self, number: usize, name: Option<Cow<str>>) {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return;
        };
        let Some(block) = self.block_mut(number) else {
            return;
        };
        let known = block.name.get_or_insert_with(|| name.clone().into_owned());
        if *known != *name {
            self.break_at(number, "it has two different names");
        }
        self.name_block(number);
    }

    /// Sets the id of a call. Missing ones mean nothing.
    pub fn set_call_id(&mut self, number: usize, id: CallId) {
        let Some(block) = self.block_mut(number).filter(|_| !id.is_missing()) else {
            return;
        };
        if block.id.is_missing() {
            block.id = id.into_owned();
        } else if block.id.text() != id.text() {
            self.break_at(number, "it has two different ids");
        }
        self.name_block(number);
    }

    /// Ends a block: no more pieces follow.
    pub fn end_block(&mut self, number: usize) {
        let Some(message) = &mut self.open else {
            return;
        };
        let block = message
            .blocks
            .get_mut(number)
            .filter(|block| !block.is_complete);
        if let Some(block) = block {
            block.is_complete = true;
            message.open_blocks -= 1;
            self.report_calls(false);
        }
    }

    /// Records why the message ends. A later event may say something else, unless it was refused.
    pub fn stop(&mut self, ending: ResponseEnding) {
        if let Some(message) = &mut self.open {
            message.has_stopped = true;
            self.refine_ending(ending);
        }
    }

    /// Records how the message ends, without saying that it does.
    pub fn refine_ending(&mut self, ending: ResponseEnding) {
        if let Some(message) = &mut self.open
            && message.ending != ResponseEnding::Refused
        {
            message.ending = ending;
        }
    }

    /// Closes the open message: none of its calls gets more pieces.
    pub fn close(&mut self) {
        let Some(message) = &mut self.open else {
            return;
        };
        let ends_in_call = message.blocks.last().is_some_and(Block::is_call);
        let ending = message.ending.after(ends_in_call);
        if ending != ResponseEnding::Refused {
            self.judge_inputs(Some(ending));
        }
        if let Some(message) = &mut self.open {
            message.drop_pieces();
        }
        self.report_calls(true);
        let turn = self.turn();
        let Some(message) = self.open.take() else {
            return;
        };
        self.events.extend(message.held_events);
        let record = message.record.as_ref();
        let record = record.map(|record| record.to_json(message.dialect, &message.blocks, turn));
        self.records.extend(record);
        self.events
            .push_back(StreamEvent::MessageEnd { turn, ending });
        self.last_closed_id = Some(message.id);
    }

    /// Drops the open message and returns its calls that weren't reported. What goes back to the API has all calls, which are all
    /// answered, but no text that broke off: of a thought, the signature is missing.
    pub fn abort(&mut self) -> Vec<Call> {
        let turn = self.turn();
        let message = self.open.take();
        message.map_or_else(Vec::new, |mut message| {
            for block in &mut message.blocks {
                if block.may_be_piece || !block.is_call() && !block.is_complete {
                    block.record = None;
                }
            }
            if let Some(record) = &message.record
                && message.blocks.iter().any(Block::is_call)
            {
                let json = record.to_json(message.dialect, &message.blocks, turn);
                self.records.push(json);
            }
            let rest = message.blocks[message.reported_blocks..].iter();
            let calls = rest.filter(|block| block.is_call() && !block.may_be_piece);
            calls.map(|call| call.to_call(turn)).collect()
        })
    }

    /// Returns the next event to report.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns the number of the open message.
    fn turn(&self) -> usize {
        self.count.saturating_sub(1)
    }
}

/// Returns the kind of a call.
pub(crate) fn call_kind(is_custom: bool) -> BlockKind {
    BlockKind::Call(if is_custom {
        CallKind::Custom
    } else {
        CallKind::Function
    })
}
