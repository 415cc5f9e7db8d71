//! What a message amounts to that arrived as a stream: the message to send back with its results. JSON that the server sent
//! is kept verbatim.

use crate::json::{JsonKind, JsonText, ParsedObject, to_json_line};
use crate::transcript::formats::{CUSTOM_CALL, invalid_input_object};
use crate::transcript::raw_call::quote_json;
use crate::transcript::stream::block::Block;
use crate::transcript::stream::block::BlockKind;
use crate::types::{CallKind, Dialect};

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
