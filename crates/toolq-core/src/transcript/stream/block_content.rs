//! What the body of a response has of a block, apart from a call's input. JSON that the server sent is kept verbatim.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{JsonKind, JsonText, ParsedObject, to_json_line};
use crate::transcript::document_error::DocumentError;

/// Members of a content block whose text arrives in pieces.
const GROWING_TEXTS: [&str; 3] = ["text", "thinking", "signature"];
/// Members of a chat completions call that are assembled. All others are copied.
const CALL_KEYS: [&str; 4] = ["id", "index", "type", "function"];

/// The members of a block.
#[derive(Debug)]
pub(crate) struct BlockContent {
    /// Members that its start had: keys, and values as JSON.
    members: Vec<(String, String)>,
    /// Texts that replace the members of the same name, because more of them arrived.
    texts: GrowingTexts,
    /// Citations, as JSON, if any arrived after the start.
    citations: Option<Vec<String>>,
}

impl BlockContent {
    /// Creates the content of a block from its start.
    pub fn new(start: &ParsedObject) -> Self {
        let members = start.members().iter();
        let members = members.map(|(key, value)| (key.to_string(), value.get().to_owned()));
        Self {
            members: members.collect(),
            texts: GrowingTexts::default(),
            citations: None,
        }
    }

    /// Returns its text, if it's a text block.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let is_text = self.initial_member("type").and_then(JsonText::to_text)? == "text";
        let grown = || self.texts.get("text").map(Cow::Borrowed);
        let text = is_text.then(|| grown().or_else(|| self.initial_member("text")?.to_text()));
        text.flatten()
    }

    /// Adds the texts and citations of a `content_block_delta` event.
    ///
    /// # Errors
    /// A text has a lone surrogate.
    pub fn apply_delta<'a>(&mut self, delta: &ParsedObject<'a>) -> Result<(), DocumentError<'a>> {
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
        Ok(())
    }

    /// Returns the content block as one line of JSON. `input`, if given, replaces that of the start, unless that must
    /// stay because the block is invalid. Numbers keep their digits. An input that isn't valid JSON becomes a string,
    /// which makes the call invalid.
    pub fn to_content_block(&self, input: Option<&str>, replace_input: bool) -> String {
        let is_replaced = |key: &str| match key {
            "input" => input.is_some() && replace_input,
            "citations" => self.citations.is_some(),
            key => self.texts.get(key).is_some(),
        };
        let initial_members = self.members.iter().filter(|(key, _)| !is_replaced(key));
        let mut members: Vec<String> = initial_members
            .map(|(key, json)| format_member(key, json))
            .collect();
        members.extend(self.texts.members());
        let citations = self.citations.as_ref();
        members.extend(
            citations.map(|list| format_member("citations", &format!("[{}]", list.join(",")))),
        );
        members.extend(input.map(|input| {
            let json = match serde_json::from_str::<&RawValue>(input) {
                Ok(json) => json.get().to_owned(),
                Err(_) => quote_json(input),
            };
            format_member("input", &json)
        }));
        to_json_line(&format!("{{{}}}", members.join(","))).into_owned()
    }

    /// Returns the call as an entry of `tool_calls`, on one line. Additional members from the server are kept, since
    /// they must be sent back with the call.
    pub fn to_function_call(&self, id_and_name: [Option<&str>; 2], arguments: &str) -> String {
        let [id, name] = id_and_name.map(|text| text.map_or("null".to_owned(), quote_json));
        let arguments = quote_json(arguments);
        let function = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
        let mut members = vec![
            format_member("id", &id),
            format_member("type", r#""function""#),
            format_member("function", &function),
        ];
        let others = self.members.iter();
        let others = others.filter(|(key, _)| !CALL_KEYS.contains(&&**key));
        members.extend(others.map(|(key, json)| format_member(key, json)));
        to_json_line(&format!("{{{}}}", members.join(","))).into_owned()
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
    pub fn append(&mut self, name: &'static str, piece: &str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, text)) => text.push_str(piece),
            None => self.0.push((name, piece.to_owned())),
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let mut texts = self.0.iter();
        texts.find_map(|(known, text)| (*known == name).then_some(text.as_str()))
    }

    /// Returns each text as a member of a JSON object, on one line.
    pub fn members(&self) -> impl Iterator<Item = String> {
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
) -> Result<Option<Cow<'a, str>>, DocumentError<'a>> {
    let piece = object
        .get(name)
        .filter(|piece| piece.kind() == JsonKind::String);
    let text = piece.map(|json| {
        let message = || DocumentError::new(json, format!("`{name}` has a lone surrogate"));
        json.to_text().ok_or_else(message)
    });
    text.transpose()
}

/// Formats a member of a JSON object: `"key":json`.
pub(crate) fn format_member(key: &str, json: &str) -> String {
    format!("{}:{json}", quote_json(key))
}

fn quote_json(text: &str) -> String {
    Value::from(text).to_string()
}
