//! The parts of a response that is arriving: content blocks, and calls of chat completions. JSON that the server sent
//! is kept verbatim.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{JsonText, MAX_INPUT_BYTES, ParsedObject, to_json_line};
use crate::transcript::json_end_scanner::JsonEndScanner;
use crate::transcript::stream::GROWTH_DIVISOR;

/// Members of a content block whose text arrives in pieces.
const GROWING_TEXTS: [&str; 3] = ["text", "thinking", "signature"];
/// Members of a chat completions call that are handled separately. All others are copied.
const CALL_KEYS: [&str; 4] = ["id", "index", "type", "function"];

/// A content block, or a call of chat completions.
#[derive(Debug, Default)]
pub(crate) struct PartialBlock {
    /// Whether it's a call.
    pub is_call: bool,
    /// Id of a chat completions call.
    pub id: Option<String>,
    /// Name of a chat completions call.
    pub name: Option<String>,
    /// Members that its start had: keys, and values as JSON.
    members: Vec<(String, String)>,
    /// Texts that replace the members of the same name, because more of them arrived.
    texts: GrowingTexts,
    /// Citations, as JSON, if any arrived after the start.
    citations: Option<Vec<String>>,
    /// The JSON of a call's input, as far as it arrived.
    input: String,
    /// Length of the input when it was last reported, in bytes.
    reported_bytes: usize,
    end_scanner: JsonEndScanner,
    /// The input has its end.
    has_end: bool,
    /// No more pieces may follow: if it's a call, it may already have been handed out.
    pub is_complete: bool,
}

impl PartialBlock {
    /// Creates the block that a `content_block_start` event starts.
    pub(crate) fn from_content_block(block: &ParsedObject) -> Self {
        Self {
            is_call: block
                .get_text("type")
                .is_some_and(|kind| kind == "tool_use"),
            members: copy_members(block, &[]),
            ..Self::default()
        }
    }

    /// Creates the call that a piece of chat completions starts. Additional members from the server are kept, since
    /// they must be sent back with the call.
    pub(crate) fn from_call_piece(piece: &ParsedObject) -> Self {
        Self {
            is_call: true,
            members: copy_members(piece, &CALL_KEYS),
            ..Self::default()
        }
    }

    /// Returns its text, if it's a text block.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        let is_text = self.initial_member("type").and_then(JsonText::to_text)? == "text";
        let grown = || self.texts.get("text").map(Cow::Borrowed);
        let text = is_text.then(|| grown().or_else(|| self.initial_member("text")?.to_text()));
        text.flatten()
    }

    /// Returns the id, the name and the input so far of a call, if the input has grown by enough since the last time.
    pub(crate) fn grown_input(&mut self) -> Option<(String, String, &str)> {
        let has_grown =
            self.input.len() > self.reported_bytes + self.reported_bytes / GROWTH_DIVISOR;
        if !self.is_call || !has_grown || self.input.len() > MAX_INPUT_BYTES {
            return None;
        }
        let member = |name: &str| Some(self.initial_member(name)?.to_text()?.into_owned());
        let id = self.id.clone().or_else(|| member("id"))?;
        let name = self.name.clone().or_else(|| member("name"))?;
        self.reported_bytes = self.input.len();
        Some((id, name, &self.input))
    }

    /// Returns whether the input so far is valid JSON. It isn't if it's empty: it may be complete, or not have started.
    pub(crate) fn has_valid_input(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.input).is_ok()
    }

    /// Returns whether it has a name and the end of its input.
    pub(crate) fn seems_complete(&self) -> bool {
        self.name.is_some() && self.has_end
    }

    /// Adds a piece of the input.
    ///
    /// # Errors
    /// The call was already complete.
    pub(crate) fn append_input(&mut self, piece: &str) -> Result<(), String> {
        if self.is_complete {
            let message = || "has a piece of a call that was already complete".to_owned();
            return piece.trim().is_empty().then_some(()).ok_or_else(message);
        }
        self.input.push_str(piece);
        self.has_end |= self.end_scanner.reaches_end(self.input.as_bytes());
        Ok(())
    }

    /// Adds the delta of a `content_block_delta` event.
    ///
    /// # Errors
    /// As for [`append_input`](Self::append_input), or a piece has a lone surrogate.
    pub(crate) fn apply_delta(&mut self, delta: &ParsedObject) -> Result<(), String> {
        for name in GROWING_TEXTS {
            if let Some(piece) = text_piece(delta, name)? {
                if self.texts.get(name).is_none() {
                    let initial_text = self.initial_member(name).and_then(JsonText::to_text);
                    let initial_text = initial_text.unwrap_or_default().into_owned();
                    self.texts.append(name, &initial_text);
                }
                self.texts.append(name, &piece);
            }
        }
        if let Some(citation) = delta.get("citation") {
            let known = self.citations.take();
            let mut known = known.unwrap_or_else(|| {
                let given = self
                    .initial_member("citations")
                    .and_then(JsonText::elements);
                let given = given.unwrap_or_default().into_iter();
                given.map(|known| known.get().to_owned()).collect()
            });
            known.push(citation.get().to_owned());
            self.citations = Some(known);
        }
        match text_piece(delta, "partial_json")? {
            Some(piece) => self.append_input(&piece),
            None => Ok(()),
        }
    }

    /// Returns the block as one line of JSON, the way the session log stores it: a call must have the same bytes when
    /// it's read from there. Numbers in the input keep their digits. An input that isn't valid JSON becomes a string,
    /// which makes the call invalid.
    pub(crate) fn to_json(&self) -> String {
        let has_input = !self.input.trim().is_empty();
        let replaced = |key: &str| match key {
            "input" => has_input,
            "citations" => self.citations.is_some(),
            key => self.texts.get(key).is_some(),
        };
        let initial_members = self.members.iter().filter(|(key, _)| !replaced(key));
        let mut members: Vec<String> = initial_members
            .map(|(key, json)| format_member(key, json))
            .collect();
        members.extend(self.texts.members());
        let citations = self.citations.as_ref();
        members.extend(
            citations.map(|list| format_member("citations", &format!("[{}]", list.join(",")))),
        );
        if has_input {
            let input = match serde_json::from_str::<&RawValue>(&self.input) {
                Ok(input) => input.get().to_owned(),
                Err(_) => quote_json(&self.input),
            };
            members.push(format_member("input", &input));
        }
        to_json_line(&format!("{{{}}}", members.join(","))).into_owned()
    }

    /// Like [`to_json`](Self::to_json), as an entry of `tool_calls`.
    pub(crate) fn to_function_call(&self) -> String {
        let text = |text: &Option<String>| text.as_deref().map_or("null".to_owned(), quote_json);
        let (id, name, arguments) = (text(&self.id), text(&self.name), quote_json(&self.input));
        let mut members = vec![
            format_member("id", &id),
            format_member("type", r#""function""#),
            format_member(
                "function",
                &format!(r#"{{"name":{name},"arguments":{arguments}}}"#),
            ),
        ];
        members.extend(
            self.members
                .iter()
                .map(|(key, json)| format_member(key, json)),
        );
        let call = format!("{{{}}}", members.join(","));
        to_json_line(&call).into_owned()
    }

    fn initial_member(&self, name: &str) -> Option<JsonText<'_>> {
        let mut backwards = self.members.iter().rev();
        backwards.find_map(|(key, json)| (key == name).then(|| JsonText::new(json)))
    }
}

/// Texts that arrive in pieces, by name.
#[derive(Debug, Default)]
pub(crate) struct GrowingTexts(Vec<(&'static str, String)>);

impl GrowingTexts {
    pub(crate) fn append(&mut self, name: &'static str, piece: &str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, text)) => text.push_str(piece),
            None => self.0.push((name, piece.to_owned())),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut texts = self.0.iter();
        texts.find_map(|(known, text)| (*known == name).then_some(text.as_str()))
    }

    /// Returns each text as a member of a JSON object, on one line.
    pub(crate) fn members(&self) -> impl Iterator<Item = String> {
        let texts = self.0.iter();
        texts.map(|(name, text)| to_json_line(&format_member(name, &quote_json(text))).into_owned())
    }
}

/// Returns the string at `name`, or `None` if it's missing or not a string.
///
/// # Errors
/// The string has a lone surrogate.
pub(crate) fn text_piece<'a>(
    object: &ParsedObject<'a>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, String> {
    match object.get(name).filter(|piece| piece.kind() == "a string") {
        None => Ok(None),
        Some(json) => {
            let message = || format!("has a `{name}` with a lone surrogate");
            json.to_text().map(Some).ok_or_else(message)
        }
    }
}

fn copy_members(object: &ParsedObject, excluded: &[&str]) -> Vec<(String, String)> {
    let members = object.members().iter();
    let members = members.filter(|(key, _)| !excluded.contains(&&**key));
    members
        .map(|(key, value)| (key.to_string(), value.get().to_owned()))
        .collect()
}

/// Formats a member of a JSON object: `"key":json`.
pub(crate) fn format_member(key: &str, json: &str) -> String {
    format!("{}:{json}", quote_json(key))
}

fn quote_json(text: &str) -> String {
    Value::from(text).to_string()
}
