//! What a message amounts to that arrived as a stream: the message to send back with its results. JSON that the server sent
//! is kept verbatim.

use std::borrow::Cow;

use crate::json::{Input, InvalidInput, JsonKind, JsonText, ParsedObject, to_json_line};
use crate::transcript::index::CallId;
use crate::transcript::input_source::InputError;
use crate::transcript::raw_call::{
    CUSTOM_CALL, RawCall, invalid_input_object, parse_input_text, quote_json,
};
use crate::transcript::stream::call_input::CallInput;
use crate::types::{AnswerForm, Call, CallKind, Dialect, ResponseEnding, Turn, TurnOrigin};

/// Members of a chat completions call that are put together from its pieces.
const CALL_KEYS: [&str; 5] = ["id", "index", "type", "function", "custom"];

/// What a message has besides its blocks.
#[derive(Debug, Default)]
pub(crate) struct MessageRecord {
    /// Its members, in the order in which they came.
    members: Members,
    /// Its items or parts as they came, each with the number of its block, if it has one.
    parts: Vec<(Option<usize>, String)>,
}

/// What a block has besides the input of a call.
#[derive(Debug)]
pub(crate) struct BlockRecord(Members);

impl MessageRecord {
    /// Adds the members of a part of the message: texts and lists go on where they ended.
    pub fn add_members(&mut self, part: &ParsedObject, left_out: &[&str]) {
        self.members.add(part, left_out);
    }

    /// Adds an item or part; `block` is the number of its block.
    pub fn add_part(&mut self, part: JsonText, block: Option<usize>) {
        let json = to_json_line(part.get()).into_owned();
        self.parts.push((block, json));
    }

    /// Forgets all items: those that follow are all there are.
    pub fn clear_parts(&mut self) {
        self.parts.clear();
    }

    /// Returns the message with the number `turn` as one line of JSON.
    pub fn to_json(&self, dialect: Dialect, blocks: &[Block], turn: usize) -> String {
        let of_blocks = |json: fn(&Block, &Members, usize) -> String| {
            let records = blocks
                .iter()
                .filter_map(|block| Some((block, block.record.as_ref()?)));
            let all: Vec<String> = records
                .map(|(block, record)| json(block, &record.0, turn))
                .collect();
            list_json(&all)
        };
        let message = match dialect {
            Dialect::OpenAiResponses => list_json(&self.items(blocks, turn)),
            Dialect::Gemini => {
                let parts: Vec<&str> = self.parts.iter().map(|(_, part)| &**part).collect();
                format!(r#"{{"role":"model","parts":{}}}"#, list_json(&parts))
            }
            Dialect::OpenAiChat => {
                let mut message = Members::default();
                message.set("role", r#""assistant""#.to_owned());
                message.set("content", "null".to_owned());
                for (key, json) in &self.members.0 {
                    message.set(key, json.clone());
                }
                if !blocks.is_empty() {
                    message.set("tool_calls", of_blocks(call_json));
                }
                message.to_json()
            }
            _ => format!(
                r#"{{"role":"assistant","content":{}}}"#,
                of_blocks(block_json)
            ),
        };
        to_json_line(&message).into_owned()
    }

    /// Returns the items of a response. Results name each call by its id, also one that came without, or never came as an item.
    fn items(&self, blocks: &[Block], turn: usize) -> Vec<String> {
        let with_id = |(number, json): &(Option<usize>, String)| {
            let block = number.and_then(|number| blocks.get(number));
            let nameless = block.filter(|block| block.is_call() && block.id.is_missing());
            match nameless.zip(JsonText::new(json).object()) {
                Some((block, item)) => {
                    let mut members = Members::default();
                    members.add(&item, &[]);
                    members.set("call_id", id_json(block, turn));
                    members.to_json()
                }
                None => json.clone(),
            }
        };
        let is_item = |number: usize| self.parts.iter().any(|(known, _)| *known == Some(number));
        let others = blocks
            .iter()
            .enumerate()
            .filter(|(number, block)| block.is_call() && !is_item(*number));
        let others = others.map(|(_, block)| item_json(block, turn));
        self.parts.iter().map(with_id).chain(others).collect()
    }
}

fn list_json(values: &[impl AsRef<str>]) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    format!("[{}]", values.join(","))
}

/// Returns the id of a call as its result has it.
fn id_json(block: &Block, turn: usize) -> String {
    match block.to_call(turn) {
        call if call.has_number_id => call.id,
        call => quote_json(&call.id),
    }
}

/// Returns a call as an item.
fn item_json(block: &Block, turn: usize) -> String {
    let (kind, arguments) = match block.kind {
        BlockKind::Call(CallKind::Custom) => (CUSTOM_CALL, "input"),
        _ => ("function_call", "arguments"),
    };
    let mut item = Members::default();
    item.set("type", quote_json(kind));
    item.set("call_id", id_json(block, turn));
    item.set(
        "name",
        quote_json(block.name.as_deref().unwrap_or_default()),
    );
    item.set(arguments, quote_json(block.input.text()));
    item.to_json()
}

impl BlockRecord {
    pub fn new(start: &ParsedObject) -> Self {
        let mut members = Members::default();
        members.add(start, &[]);
        Self(members)
    }

    /// Adds the members of a part of the block: texts and lists go on where they ended.
    pub fn add_members(&mut self, part: &ParsedObject, left_out: &[&str]) {
        self.0.add(part, left_out);
    }

    /// Adds an element to a list.
    pub fn add_element(&mut self, key: &str, element: JsonText) {
        self.0.join(key, &format!("[{}]", element.get()));
    }
}

/// Returns a content block of the Messages API, which takes only objects as inputs.
fn block_json(block: &Block, members: &Members, turn: usize) -> String {
    let mut members = Members(members.0.clone());
    if block.is_call() {
        members.set("id", id_json(block, turn));
    }
    let text = block.input.text();
    let input = match block.parse_input() {
        _ if block.kind == BlockKind::Other => None,
        Ok(input) => Some(input.text().to_owned()),
        Err(_) => Some(invalid_input_object(text).to_string()),
    };
    if let Some(input) = input {
        members.set("input", input);
    }
    members.to_json()
}

/// Returns an entry of `tool_calls`.
fn call_json(block: &Block, members: &Members, turn: usize) -> String {
    let name = block.name.as_deref().map_or("null".to_owned(), quote_json);
    let input = quote_json(block.input.text());
    let (kind, arguments) = match block.kind {
        BlockKind::Call(CallKind::Custom) => ("custom", "input"),
        _ => ("function", "arguments"),
    };
    let mut call = Members::default();
    call.set("id", id_json(block, turn));
    call.set("type", quote_json(kind));
    call.set(kind, format!(r#"{{"name":{name},"{arguments}":{input}}}"#));
    let others = members
        .0
        .iter()
        .filter(|(key, _)| !CALL_KEYS.contains(&&**key));
    call.0.extend(others.cloned());
    call.to_json()
}

/// The members of an object: keys, and values as JSON.
#[derive(Debug, Default)]
struct Members(Vec<(String, String)>);

impl Members {
    fn set(&mut self, key: &str, json: String) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, value)) => *value = json,
            None => self.0.push((key.to_owned(), json)),
        }
    }

    fn add(&mut self, part: &ParsedObject, left_out: &[&str]) {
        for (key, value) in part.members() {
            if !left_out.contains(&&**key) {
                self.join(key, value.get());
            }
        }
    }

    /// Sets a value, or joins it to the one that is there: texts and lists go on where they ended.
    fn join(&mut self, key: &str, json: &str) {
        let known = self.0.iter_mut().find(|(known, _)| known == key);
        let Some((_, known)) = known else {
            return self.0.push((key.to_owned(), json.to_owned()));
        };
        let kinds = (JsonText::new(known).kind(), JsonText::new(json).kind());
        match kinds {
            // Texts stay escaped, so halves of characters meet, too.
            (JsonKind::String, JsonKind::String) => {
                known.truncate(known.len() - 1);
                known.push_str(&json[1..]);
            }
            (JsonKind::Array, JsonKind::Array) if known == "[]" => json.clone_into(known),
            (JsonKind::Array, JsonKind::Array) if json == "[]" => {}
            (JsonKind::Array, JsonKind::Array) => {
                known.truncate(known.len() - 1);
                known.push(',');
                known.push_str(&json[1..]);
            }
            (_, JsonKind::Null) => {}
            _ => json.clone_into(known),
        }
    }

    fn to_json(&self) -> String {
        let members = self.0.iter();
        let members = members.map(|(key, json)| format!("{}:{json}", quote_json(key)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

// A block of a message that is arriving: a call, or anything else.

/// What a block is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A call that gets a result.
    Call(CallKind),
    /// Something else that has an input, such as a call that the API runs.
    Input,
    /// Something that has no input.
    #[default]
    Other,
}

/// A block that is arriving.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub kind: BlockKind,
    /// The index by which the API refers to it.
    pub index: Option<u64>,
    /// The name by which the API refers to it.
    pub key: Option<String>,
    /// Id of a call.
    pub id: CallId<'static>,
    /// Name of a call. `None` if it's missing or not a string.
    pub name: Option<String>,
    pub input: CallInput,
    /// What makes the call invalid, regardless of the input that arrives.
    pub fault: Option<InvalidInput>,
    /// Its position among the calls of its message, or that of the next call if it's none.
    pub position: usize,
    /// It has neither an id nor a name yet. Without them, what arrived is no call but pieces of another one.
    pub may_be_piece: bool,
    /// Its input came before its id and its name.
    pub was_named_late: bool,
    /// Its end has come: no more pieces may follow.
    pub is_complete: bool,
    /// Number of the first block of its group: blocks of which each began while another one was open. A piece of one may be in
    /// the input of another.
    pub group: usize,
    /// What goes back to the API, if that is kept.
    pub record: Option<Box<BlockRecord>>,
}

impl Block {
    /// Creates a block without anything but its kind and index.
    pub fn new(kind: BlockKind, index: Option<u64>) -> Self {
        Self {
            kind,
            index,
            input: CallInput::new(kind == BlockKind::Call(CallKind::Custom), None),
            ..Self::default()
        }
    }

    /// Sets the id and the name. Empty ones count as missing.
    #[must_use]
    pub fn called(self, id: CallId, name: Option<Cow<str>>) -> Self {
        Self {
            id: id.into_owned(),
            name: name.map(Cow::into_owned),
            ..self
        }
    }

    pub fn is_call(&self) -> bool {
        matches!(self.kind, BlockKind::Call(_))
    }

    /// Returns the call, as far as it has arrived.
    pub fn to_call(&self, turn: usize) -> Call {
        let (id, name) = (self.id.clone(), self.name.clone().map(Cow::Owned));
        let call = match (&self.fault, self.kind) {
            (Some(fault), BlockKind::Call(CallKind::Custom)) => {
                RawCall::custom(id, name, Err(fault.clone()))
            }
            (None, BlockKind::Call(CallKind::Custom)) => {
                RawCall::custom(id, name, Ok(self.input.text()))
            }
            (Some(fault), _) => RawCall::new(id, name, Err(fault.clone())),
            (None, _) => RawCall::new(id, name, self.parse_input()),
        };
        call.into_call(turn, self.position)
    }

    /// Parses the input. None is the same as an empty object.
    pub fn parse_input(&self) -> Result<Input, InvalidInput> {
        parse_input_text(self.input.text())
    }

    /// Keeps what goes back to the API. `start` is the JSON that the block begins with.
    pub fn keep_record(&mut self, start: &ParsedObject) {
        self.record = Some(Box::new(BlockRecord::new(start)));
    }
}

// The events of a stream.

/// What has become known of a stream. Completed calls are reported in call order.
#[derive(Debug, Clone)]
pub enum StreamEvent {
    /// A call started.
    CallStarted {
        /// Number of its message, counted from 0 among all messages of the stream, even those without calls.
        turn: usize,
        /// The form that the results of this message will have.
        form: AnswerForm,
        /// Where its message comes from, as far as the message has said so.
        origin: TurnOrigin,
    },
    /// More of a call's input arrived.
    PartialInput(PartialCall),
    /// A call is complete. It isn't known yet whether the message was cut off inside it.
    CallComplete(Call),
    /// The pieces of a message don't fit together: from a call on, it isn't certain what was sent.
    Broken {
        /// Number of the message.
        turn: usize,
        /// The position of that call, which may be one that has yet to arrive.
        first: usize,
        /// What doesn't fit, and where.
        error: InputError,
    },
    /// A message ended.
    MessageEnd {
        /// Number of the message.
        turn: usize,
        /// How it ended.
        ending: ResponseEnding,
    },
    /// The rest of the stream can't be read. This is the last event.
    Aborted {
        /// Calls that started and weren't reported as complete.
        unfinished_calls: Vec<Call>,
        /// What went wrong, and where.
        error: InputError,
    },
}

/// A call whose input is still arriving.
#[derive(Debug, Clone)]
pub struct PartialCall {
    /// Number of its message.
    pub turn: usize,
    /// Position among the calls of its message, counted from 0.
    pub position: usize,
    /// Its id.
    pub id: String,
    /// Name of the tool that it calls.
    pub name: String,
    /// The JSON of its input so far, to be completed with
    /// [`complete_partial_json`](crate::transcript::complete_partial_json).
    pub input_so_far: String,
}

/// Returns the turns of all complete messages, and the first error in them, or that aborted the stream, if any. For callers
/// that wait for the end of a stream.
pub fn collect_turns(
    events: impl IntoIterator<Item = StreamEvent>,
) -> (Vec<Turn>, Option<InputError>) {
    let mut turns = Vec::new();
    // The form doesn't matter for a message without calls.
    let mut turn = Turn::of_calls(0, Vec::new(), AnswerForm::Message);
    let mut first_error = None;
    for event in events {
        match event {
            StreamEvent::CallStarted { form, .. } => turn.answer_form = form,
            StreamEvent::PartialInput(_) => {}
            StreamEvent::CallComplete(call) => turn.calls.push(call),
            StreamEvent::Broken { first, error, .. } => {
                turn.broken_from = Some(first);
                first_error.get_or_insert(error);
            }
            StreamEvent::MessageEnd {
                turn: number,
                ending,
            } => {
                let next = Turn::of_calls(0, Vec::new(), turn.answer_form);
                let ended = std::mem::replace(&mut turn, next);
                turns.push(Turn {
                    number,
                    ending,
                    ..ended
                });
            }
            StreamEvent::Aborted { error, .. } => {
                first_error.get_or_insert(error);
            }
        }
    }
    (turns, first_error)
}
