//! The parts of an answer that is arriving: content blocks, and calls of chat completions. What came as JSON stays the text
//! that it is.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{Json, Object, json_line};
use crate::transcript::json_scanner::Extent;

/// The texts of a content block that grow.
const GROWING: [&str; 3] = ["text", "thinking", "signature"];
/// What a call of chat completions has in every piece, or is told by itself.
const OWN: [&str; 4] = ["id", "index", "type", "function"];

/// A content block, or a call of chat completions.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// It is a call.
    pub is_use: bool,
    /// Of a call of chat completions.
    pub id: Option<String>,
    /// Of a call of chat completions.
    pub name: Option<String>,
    /// What came at its begin: keys, and the JSON of their values.
    members: Vec<(String, String)>,
    /// What came since, and counts in the place of the member.
    texts: Texts,
    citations: Option<Vec<String>>,
    /// The JSON of a call's input, as far as it is there.
    input: String,
    extent: Extent,
    /// The end of the input is there.
    ended: bool,
    /// It has all its pieces. Of a call: somebody may have it by now.
    pub whole: bool,
}

impl Block {
    /// A content block that begins.
    pub(crate) fn of_content(block: &Object) -> Self {
        Self {
            is_use: block.text("type").is_some_and(|kind| kind == "tool_use"),
            members: members(block, &[]),
            ..Self::default()
        }
    }

    /// A call of chat completions that begins. What the server put beside it goes back with it.
    pub(crate) fn of_call(piece: &Object) -> Self {
        Self {
            is_use: true,
            members: members(piece, &OWN),
            ..Self::default()
        }
    }

    /// Its text, if it is one.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        let is_text = self.given("type").and_then(Json::text)? == "text";
        let grown = || self.texts.get("text").map(Cow::Borrowed);
        let text = is_text.then(|| grown().or_else(|| self.given("text")?.text()));
        text.flatten()
    }

    /// Whether the input is JSON by now. One that is empty may be all, or not have begun.
    pub(crate) fn has_input(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.input).is_ok()
    }

    /// Whether it has a name and the end of its input.
    pub(crate) fn seems_whole(&self) -> bool {
        self.name.is_some() && self.ended
    }

    /// Adds a piece of the input.
    ///
    /// # Errors
    /// The call was whole without it.
    pub(crate) fn grow(&mut self, piece: &str) -> Result<(), String> {
        if self.whole {
            let late = || "has a piece of a call that was whole already".to_owned();
            return piece.trim().is_empty().then_some(()).ok_or_else(late);
        }
        self.input.push_str(piece);
        self.ended |= self.extent.ends_in(self.input.as_bytes());
        Ok(())
    }

    /// Adds what a `content_block_delta` brings.
    ///
    /// # Errors
    /// As [`grow`](Self::grow), or a piece is no text.
    pub(crate) fn add(&mut self, delta: &Object) -> Result<(), String> {
        for name in GROWING {
            if let Some(piece) = piece(delta, name)? {
                if self.texts.get(name).is_none() {
                    let begun = self.given(name).and_then(Json::text);
                    let begun = begun.unwrap_or_default().into_owned();
                    self.texts.add(name, &begun);
                }
                self.texts.add(name, &piece);
            }
        }
        if let Some(citation) = delta.get("citation") {
            let known = self.citations.take();
            let mut known = known.unwrap_or_else(|| {
                let given = self.given("citations").and_then(Json::list);
                let given = given.unwrap_or_default().into_iter();
                given.map(|known| known.get().to_owned()).collect()
            });
            known.push(citation.get().to_owned());
            self.citations = Some(known);
        }
        match piece(delta, "partial_json")? {
            Some(piece) => self.grow(&piece),
            None => Ok(()),
        }
    }

    /// The block, on one line, as a log holds it: its calls must have the same bytes when they are read from there. An input
    /// keeps its digits; one that is no JSON stands there as a text, which is no input.
    pub(crate) fn json(&self) -> String {
        let has_input = !self.input.trim().is_empty();
        let replaced = |key: &str| match key {
            "input" => has_input,
            "citations" => self.citations.is_some(),
            key => self.texts.get(key).is_some(),
        };
        let given = self.members.iter().filter(|(key, _)| !replaced(key));
        let mut members: Vec<String> = given.map(|(key, json)| member(key, json)).collect();
        members.extend(self.texts.members());
        let citations = self.citations.as_ref();
        members.extend(citations.map(|list| member("citations", &format!("[{}]", list.join(",")))));
        if has_input {
            let input = match serde_json::from_str::<&RawValue>(&self.input) {
                Ok(input) => input.get().to_owned(),
                Err(_) => quoted(&self.input),
            };
            members.push(member("input", &input));
        }
        json_line(&format!("{{{}}}", members.join(","))).into_owned()
    }

    /// The same as a call of chat completions.
    pub(crate) fn function_call(&self) -> String {
        let text = |text: &Option<String>| text.as_deref().map_or("null".to_owned(), quoted);
        let (id, name, arguments) = (text(&self.id), text(&self.name), quoted(&self.input));
        let mut members = vec![
            member("id", &id),
            member("type", r#""function""#),
            member(
                "function",
                &format!(r#"{{"name":{name},"arguments":{arguments}}}"#),
            ),
        ];
        members.extend(self.members.iter().map(|(key, json)| member(key, json)));
        let call = format!("{{{}}}", members.join(","));
        json_line(&call).into_owned()
    }

    fn given(&self, name: &str) -> Option<Json<'_>> {
        let mut backwards = self.members.iter().rev();
        backwards.find_map(|(key, json)| (key == name).then(|| Json::new(json)))
    }
}

/// Texts that grow, each under its name.
#[derive(Debug, Default)]
pub(crate) struct Texts(Vec<(&'static str, String)>);

impl Texts {
    pub(crate) fn add(&mut self, name: &'static str, piece: &str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, text)) => text.push_str(piece),
            None => self.0.push((name, piece.to_owned())),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut texts = self.0.iter();
        texts.find_map(|(known, text)| (*known == name).then_some(text.as_str()))
    }

    /// Each as a member of an object, on one line.
    pub(crate) fn members(&self) -> impl Iterator<Item = String> {
        let texts = self.0.iter();
        texts.map(|(name, text)| json_line(&member(name, &quoted(text))).into_owned())
    }
}

/// The piece of a text at `name`; none where there is none, or another thing.
///
/// # Errors
/// It has half of a character.
pub(crate) fn piece<'a>(object: &Object<'a>, name: &str) -> Result<Option<Cow<'a, str>>, String> {
    match object.get(name).filter(|piece| piece.kind() == "a string") {
        None => Ok(None),
        Some(json) => {
            let halved = || format!("has a `{name}` with a lone surrogate");
            json.text().map(Some).ok_or_else(halved)
        }
    }
}

fn members(object: &Object, but: &[&str]) -> Vec<(String, String)> {
    let members = object.members().iter();
    let members = members.filter(|(key, _)| !but.contains(&&**key));
    members
        .map(|(key, value)| (key.to_string(), value.get().to_owned()))
        .collect()
}

/// `"key":json`
pub(crate) fn member(key: &str, json: &str) -> String {
    format!("{}:{json}", quoted(key))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
