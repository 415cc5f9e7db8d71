//! Tracks the messages of a stream. The reader of a dialect opens a message, starts calls in it, adds pieces of their
//! inputs, and closes it; the tracker turns that into events, with completed calls in call order.

use std::collections::VecDeque;
use std::mem;

use crate::json::{Input, InvalidInput, MAX_INPUT_BYTES};
use crate::transcript::build_call::generate_call_id;
use crate::transcript::json_end_scanner::JsonEndScanner;
use crate::transcript::raw_call::RawCall;
use crate::transcript::stream::event::{PartialCall, StreamEvent};
use crate::types::{AnswerForm, Call, ResponseEnding};

/// A partial input is emitted again once it has grown by more than one part in this many. Each event repeats the whole
/// input so far, so this keeps the sum of all events a small multiple of the input.
pub(crate) const GROWTH_DIVISOR: usize = 16;

/// The open message of a stream, and the events to emit.
#[derive(Debug, Default)]
pub(crate) struct MessageTracker {
    /// Number of messages that were opened.
    message_count: usize,
    open_message: Option<OpenMessage>,
    /// Id of the last message that was closed.
    last_closed_id: Option<String>,
    pending_events: VecDeque<StreamEvent>,
}

/// A message that is still arriving.
#[derive(Debug)]
struct OpenMessage {
    id: String,
    form: AnswerForm,
    calls: Vec<CallBuilder>,
    /// Number of calls that were emitted as complete.
    completed_calls: usize,
    /// Whether its last block is a call.
    ends_in_call: bool,
    /// Whether it, or the last of its calls, ended at a limit.
    cut_off: bool,
    /// Whether it was refused.
    refused: bool,
}

/// A call that is still arriving.
#[derive(Debug)]
pub(crate) struct CallBuilder {
    /// The index by which the API refers to it.
    pub index: Option<u64>,
    /// `None` if it's missing or not a string.
    pub id: Option<String>,
    /// `None` if it's missing or not a string.
    pub name: Option<String>,
    /// The JSON of its input so far.
    pub input: String,
    /// The input in case no piece arrives.
    pub initial_input: Option<String>,
    /// An error that makes the call invalid, whatever input arrives.
    pub input_error: Option<InvalidInput>,
    end_scanner: JsonEndScanner,
    /// The input has its end.
    has_end: bool,
    is_complete: bool,
    /// Length of the input when it was last emitted, in bytes.
    emitted_bytes: usize,
}

impl CallBuilder {
    /// Creates a call without input.
    pub fn new(index: Option<u64>, id: Option<String>, name: Option<String>) -> Self {
        Self {
            index,
            id,
            name,
            input: String::new(),
            initial_input: None,
            input_error: None,
            end_scanner: JsonEndScanner::default(),
            has_end: false,
            is_complete: false,
            emitted_bytes: 0,
        }
    }

    /// Returns whether it has a name and the end of its input.
    pub fn seems_complete(&self) -> bool {
        self.name.is_some() && self.has_end
    }

    /// Converts it to the call that it would be if it had arrived in one piece.
    fn into_call(self, turn: usize, position: usize) -> Call {
        let text = match self.initial_input {
            Some(initial_input) if self.input.is_empty() => initial_input,
            _ => self.input,
        };
        let input = match self.input_error {
            Some(error) => Err(error),
            None if text.trim().is_empty() => Ok(Input::empty()),
            None => Input::parse(&text),
        };
        let name = self.name.as_deref();
        let RawCall { id, name, input } =
            RawCall::new(self.id.map(Into::into), name.map(Into::into), input);
        let name = name.unwrap_or_default();
        let id = id.unwrap_or_else(|| generate_call_id(turn, position, &name, &text));
        Call {
            turn,
            position,
            id,
            name,
            input,
            parent: None,
        }
    }
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

    /// Opens a message; `id` is empty if it has none.
    pub fn open_message(&mut self, form: AnswerForm, id: String) {
        self.message_count += 1;
        self.open_message = Some(OpenMessage {
            id,
            form,
            calls: Vec::new(),
            completed_calls: 0,
            ends_in_call: false,
            cut_off: false,
            refused: false,
        });
    }

    /// Starts a call in the open message and returns its position.
    pub fn begin_call(&mut self, call: CallBuilder) -> usize {
        let turn = self.turn_number();
        let Some(message) = &mut self.open_message else {
            return 0;
        };
        message.ends_in_call = true;
        message.calls.push(call);
        self.pending_events.push_back(StreamEvent::CallStarted {
            turn,
            form: message.form,
        });
        message.calls.len() - 1
    }

    /// Starts a block that isn't a call.
    pub fn begin_other_block(&mut self) {
        if let Some(message) = &mut self.open_message {
            message.ends_in_call = false;
        }
    }

    /// Returns the position of the last call with this `index`, or of the last call if `index` is `None`.
    pub fn find_call(&self, index: Option<u64>) -> Option<usize> {
        let calls = &self.open_message.as_ref()?.calls;
        let same = |call: &CallBuilder| index.is_none() || call.index == index;
        calls.iter().rposition(same)
    }

    /// Returns the call at `position`.
    pub fn call_mut(&mut self, position: usize) -> Option<&mut CallBuilder> {
        self.open_message.as_mut()?.calls.get_mut(position)
    }

    /// Adds the next piece of an input. Returns `false` if the call was already complete.
    #[must_use]
    pub fn add_piece(&mut self, position: usize, piece: &str) -> bool {
        let Some(call) = self.call_mut(position).filter(|_| !piece.is_empty()) else {
            return true;
        };
        if call.is_complete {
            return false;
        }
        call.input.push_str(piece);
        call.has_end |= call.end_scanner.reaches_end(call.input.as_bytes());
        self.emit_input_delta(position);
        true
    }

    /// Replaces an input by its complete text, unless the call is already complete.
    pub fn replace_input(&mut self, position: usize, text: &str) {
        if let Some(call) = self.call_mut(position).filter(|call| !call.is_complete) {
            text.clone_into(&mut call.input);
        }
    }

    /// Marks a call as complete.
    pub fn complete_call(&mut self, position: usize) {
        if let Some(call) = self.call_mut(position) {
            call.is_complete = true;
        }
        self.emit_complete_calls();
    }

    /// Marks all calls as complete.
    pub fn complete_all_calls(&mut self) {
        let calls = self
            .open_message
            .iter_mut()
            .flat_map(|message| &mut message.calls);
        calls.for_each(|call| call.is_complete = true);
        self.emit_complete_calls();
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

    /// Closes the open message.
    pub fn close_message(&mut self) {
        self.complete_all_calls();
        let turn = self.turn_number();
        if let Some(message) = self.open_message.take() {
            let ending = if message.refused {
                ResponseEnding::Refused
            } else if message.cut_off && message.ends_in_call {
                ResponseEnding::CutOff
            } else {
                ResponseEnding::Complete
            };
            self.pending_events
                .push_back(StreamEvent::MessageEnd { turn, ending });
            self.last_closed_id = Some(message.id);
        }
    }

    /// Drops the open message and returns its calls that weren't emitted as complete.
    pub fn abort(&mut self) -> Vec<Call> {
        let turn = self.turn_number();
        let Some(message) = self.open_message.take() else {
            return Vec::new();
        };
        let calls = message
            .calls
            .into_iter()
            .enumerate()
            .skip(message.completed_calls);
        calls
            .map(|(position, call)| call.into_call(turn, position))
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

    /// Emits the input so far if it has grown enough since the last time. Calls without an id or a name are skipped:
    /// there would be nothing to report them under.
    fn emit_input_delta(&mut self, position: usize) {
        let turn = self.turn_number();
        let Some(call) = self.call_mut(position) else {
            return;
        };
        let (Some(id), Some(name)) = (&call.id, &call.name) else {
            return;
        };
        let has_grown = call.input.len() > call.emitted_bytes + call.emitted_bytes / GROWTH_DIVISOR;
        if has_grown && call.input.len() <= MAX_INPUT_BYTES {
            call.emitted_bytes = call.input.len();
            let part = PartialCall {
                turn,
                position,
                id: id.clone(),
                name: name.clone(),
                input_so_far: call.input.clone(),
            };
            self.pending_events
                .push_back(StreamEvent::PartialInput(part));
        }
    }

    /// Emits the calls that are complete, in call order.
    fn emit_complete_calls(&mut self) {
        let turn = self.turn_number();
        let Some(message) = &mut self.open_message else {
            return;
        };
        while let Some(call) = message.calls.get_mut(message.completed_calls)
            && call.is_complete
        {
            // The placeholder only serves to detect pieces that arrive late.
            let placeholder = CallBuilder {
                is_complete: true,
                ..CallBuilder::new(call.index, call.id.clone(), None)
            };
            let call = mem::replace(call, placeholder).into_call(turn, message.completed_calls);
            self.pending_events
                .push_back(StreamEvent::CallComplete(call));
            message.completed_calls += 1;
        }
    }
}
