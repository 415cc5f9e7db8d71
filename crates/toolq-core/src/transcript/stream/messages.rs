//! The messages of a stream as far as they arrived: a dialect opens one, begins calls in it, adds pieces of their inputs,
//! and closes it. What is to be told of that is told in call order.

use std::collections::VecDeque;
use std::mem;

use crate::json::{Input, InputFault, MAX_INPUT_BYTES};
use crate::transcript::ids::made_id;
use crate::transcript::json_scanner::Extent;
use crate::transcript::raw_call::Asked;
use crate::transcript::stream::event::{Part, Told};
use crate::types::{Call, Form};

/// A part of an input is told again when it grew by a piece, or, once it is long, by this part of itself: all that is told
/// of an input is a small multiple of it.
const GROWTH: usize = 16;

/// The messages so far.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// How many messages were opened.
    opened: usize,
    open: Option<Message>,
    /// The name of the last message that was closed.
    closed: Option<String>,
    told: VecDeque<Told>,
}

/// The message that is arriving.
#[derive(Debug)]
struct Message {
    name: String,
    form: Form,
    calls: Vec<Arriving>,
    /// How many calls were told to be whole.
    sealed: usize,
    /// Its last block is a call.
    ends_in_call: bool,
    /// It ended at a limit, or the last of its calls did.
    cut_off: bool,
}

/// A call that is arriving.
#[derive(Debug)]
pub(crate) struct Arriving {
    /// What the vendor counts its blocks by.
    pub index: Option<u64>,
    /// None where it is missing or no string.
    pub id: Option<String>,
    /// None where it is missing or no string.
    pub name: Option<String>,
    /// The JSON of its input, as far as it is there.
    pub text: String,
    /// The input that stands where no piece comes.
    pub given: Option<String>,
    /// A fault that no piece can mend.
    pub fault: Option<InputFault>,
    extent: Extent,
    /// The end of the input is there.
    ended: bool,
    whole: bool,
    /// Bytes of the input when it was last told.
    shown: usize,
}

impl Arriving {
    /// A call that begins.
    pub fn new(index: Option<u64>, id: Option<String>, name: Option<String>) -> Self {
        Self {
            index,
            id,
            name,
            text: String::new(),
            given: None,
            fault: None,
            extent: Extent::default(),
            ended: false,
            whole: false,
            shown: 0,
        }
    }

    /// Whether it has a name and the end of its input.
    pub fn seems_whole(&self) -> bool {
        self.name.is_some() && self.ended
    }

    /// The call, as if it had come whole.
    fn call(self, turn: usize, position: usize) -> Call {
        let text = match self.given {
            Some(given) if self.text.is_empty() => given,
            _ => self.text,
        };
        let input = match self.fault {
            Some(fault) => Err(fault),
            None if text.trim().is_empty() => Ok(Input::empty()),
            None => Input::parse(&text),
        };
        let name = self.name.as_deref();
        let Asked { id, name, input } =
            Asked::new(self.id.map(Into::into), name.map(Into::into), input);
        let name = name.unwrap_or_default();
        let id = id.unwrap_or_else(|| made_id(turn, position, &name, &text));
        Call {
            turn,
            position,
            id,
            name,
            input,
            within: None,
        }
    }
}

impl Messages {
    /// How many messages were opened so far.
    pub fn opened(&self) -> usize {
        self.opened
    }

    /// Whether a message is arriving.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The name of the message that is arriving; empty where it has none.
    pub fn name(&self) -> &str {
        self.open.as_ref().map_or("", |message| &message.name)
    }

    /// The name of the message that was closed last, until that is forgotten.
    pub fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// What comes now belongs to no message that was there.
    pub fn forget(&mut self) {
        self.closed = None;
    }

    /// A new message; `name` is empty where it has none.
    pub fn open(&mut self, form: Form, name: String) {
        self.opened += 1;
        self.open = Some(Message {
            name,
            form,
            calls: Vec::new(),
            sealed: 0,
            ends_in_call: false,
            cut_off: false,
        });
    }

    /// A call begins; its position.
    pub fn begin(&mut self, call: Arriving) -> usize {
        let turn = self.turn();
        let Some(message) = &mut self.open else {
            return 0;
        };
        message.ends_in_call = true;
        message.calls.push(call);
        self.told.push_back(Told::Begun {
            turn,
            form: message.form,
        });
        message.calls.len() - 1
    }

    /// A block begins that is no call.
    pub fn other(&mut self) {
        if let Some(message) = &mut self.open {
            message.ends_in_call = false;
        }
    }

    /// The position of the last call of this `index`; of the last one of all where it is none.
    pub fn find(&self, index: Option<u64>) -> Option<usize> {
        let calls = &self.open.as_ref()?.calls;
        let same = |call: &Arriving| index.is_none() || call.index == index;
        calls.iter().rposition(same)
    }

    /// The call at `position`.
    pub fn call(&mut self, position: usize) -> Option<&mut Arriving> {
        self.open.as_mut()?.calls.get_mut(position)
    }

    /// The next piece of an input. False where the call was whole already.
    #[must_use]
    pub fn piece(&mut self, position: usize, piece: &str) -> bool {
        let Some(call) = self.call(position).filter(|_| !piece.is_empty()) else {
            return true;
        };
        if call.whole {
            return false;
        }
        call.text.push_str(piece);
        call.ended |= call.extent.ends_in(call.text.as_bytes());
        self.show(position);
        true
    }

    /// The whole input, whatever pieces of it came.
    pub fn replace(&mut self, position: usize, text: &str) {
        if let Some(call) = self.call(position).filter(|call| !call.whole) {
            text.clone_into(&mut call.text);
        }
    }

    /// The input of a call is whole.
    pub fn seal(&mut self, position: usize) {
        if let Some(call) = self.call(position) {
            call.whole = true;
        }
        self.tell_whole();
    }

    /// The inputs of all calls are whole.
    pub fn seal_all(&mut self) {
        let calls = self.open.iter_mut().flat_map(|message| &mut message.calls);
        calls.for_each(|call| call.whole = true);
        self.tell_whole();
    }

    /// Whether the message ended at a limit, as far as it is known by now.
    pub fn cut_off(&mut self, cut_off: bool) {
        if let Some(message) = &mut self.open {
            message.cut_off = cut_off;
        }
    }

    /// The message is over.
    pub fn close(&mut self) {
        self.seal_all();
        let turn = self.turn();
        if let Some(message) = self.open.take() {
            let cut_off = message.cut_off && message.ends_in_call;
            self.told.push_back(Told::Closed { turn, cut_off });
            self.closed = Some(message.name);
        }
    }

    /// No more comes of the message: the calls that were not told to be whole.
    pub fn abandon(&mut self) -> Vec<Call> {
        let turn = self.turn();
        let Some(message) = self.open.take() else {
            return Vec::new();
        };
        let calls = message.calls.into_iter().enumerate().skip(message.sealed);
        calls
            .map(|(position, call)| call.call(turn, position))
            .collect()
    }

    /// The next of what there is to tell.
    pub fn next(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// The number of the message that is arriving.
    fn turn(&self) -> usize {
        self.opened.saturating_sub(1)
    }

    /// Tells what is known of an input, if that is much more than when it was last told. A call without an id has nothing
    /// to be told under.
    fn show(&mut self, position: usize) {
        let turn = self.turn();
        let Some(call) = self.call(position) else {
            return;
        };
        let (Some(id), Some(name)) = (&call.id, &call.name) else {
            return;
        };
        let grown = call.text.len() > call.shown + call.shown / GROWTH;
        if grown && call.text.len() <= MAX_INPUT_BYTES {
            call.shown = call.text.len();
            let part = Part {
                turn,
                position,
                id: id.clone(),
                name: name.clone(),
                text: call.text.clone(),
            };
            self.told.push_back(Told::Part(part));
        }
    }

    /// Tells of the calls that are whole, in call order.
    fn tell_whole(&mut self) {
        let turn = self.turn();
        let Some(message) = &mut self.open else {
            return;
        };
        while let Some(call) = message.calls.get_mut(message.sealed)
            && call.whole
        {
            // What stays answers later pieces only.
            let stays = Arriving {
                whole: true,
                ..Arriving::new(call.index, call.id.clone(), None)
            };
            let call = mem::replace(call, stays).call(turn, message.sealed);
            self.told.push_back(Told::Whole(call));
            message.sealed += 1;
        }
    }
}
