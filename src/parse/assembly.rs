//! The events of a streamed answer → the body that the API would have sent at once. One event at a time comes in; when the
//! answer is complete, its body goes out.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::response::{ResponseFault, error};
use crate::model::Api;
use crate::model::json::Object;

/// An answer that is arriving.
#[derive(Debug)]
pub struct Assembly {
    api: Api,
    /// Bytes of a line that is not whole yet.
    rest: Vec<u8>,
    /// The data of the event that is arriving.
    data: String,
    model: Value,
    blocks: Vec<Block>,
    /// What stands in the answer beside its blocks: texts of chat completions.
    texts: Map<String, Value>,
    stop: Value,
    usage: Map<String, Value>,
    complete: bool,
}

/// A content block, or a call of chat completions.
#[derive(Debug)]
struct Block {
    index: u64,
    members: Map<String, Value>,
    /// The JSON of a call's input, as far as it is there.
    input: String,
}

impl Assembly {
    /// Nothing has come yet.
    pub fn new(api: Api) -> Self {
        Self {
            api,
            rest: Vec::new(),
            data: String::new(),
            model: Value::Null,
            blocks: Vec::new(),
            texts: Map::new(),
            stop: Value::Null,
            usage: Map::new(),
            complete: false,
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The API's error, or an event that is none.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ResponseFault> {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        self.rest
            .extend_from_slice(pieces.next().unwrap_or_default());
        for piece in pieces {
            let line = std::mem::take(&mut self.rest);
            self.line(&String::from_utf8_lossy(&line))?;
            self.rest.extend_from_slice(piece);
        }
        Ok(())
    }

    /// The body; none where the stream ended before it was complete.
    ///
    /// # Errors
    /// The API's error, or an event that is none.
    pub fn body(mut self) -> Result<Option<String>, ResponseFault> {
        let line = std::mem::take(&mut self.rest);
        self.line(&String::from_utf8_lossy(&line))?;
        self.line("")?;
        if !self.complete {
            return Ok(None);
        }
        let body = match self.api {
            Api::Anthropic => self.message(),
            Api::OpenAiChat => self.completion(),
        };
        Ok(Some(body))
    }

    fn line(&mut self, line: &str) -> Result<(), ResponseFault> {
        let line = line.trim_end_matches('\r');
        if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        } else if line.is_empty() && !self.data.is_empty() {
            let data = std::mem::take(&mut self.data);
            return self.event(data.trim());
        }
        Ok(())
    }

    fn event(&mut self, data: &str) -> Result<(), ResponseFault> {
        if data == "[DONE]" {
            return Ok(());
        }
        let strange = |why: String| ResponseFault::Strange(format!("an event {why}"));
        let object = Object::read(data)
            .map_err(|error| strange(format!("is no JSON: {error}")))?
            .ok_or_else(|| strange("is no object".to_owned()))?;
        if let Some(error) = error(&object) {
            return Err(error);
        }
        // Read as JSON just now.
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        match self.api {
            Api::Anthropic => self.of_anthropic(&event),
            Api::OpenAiChat => self.of_openai(&event),
        }
        Ok(())
    }

    fn of_anthropic(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.model = event["message"]["model"].clone();
                self.used(&event["message"]["usage"]);
            }
            "content_block_start" => {
                let members = event["content_block"].as_object();
                self.blocks.push(Block {
                    index: event["index"].as_u64().unwrap_or_default(),
                    members: members.cloned().unwrap_or_default(),
                    input: String::new(),
                });
            }
            "content_block_delta" => {
                let index = event["index"].as_u64().unwrap_or_default();
                let block = self.blocks.iter_mut().rfind(|block| block.index == index);
                if let Some(block) = block {
                    block.add(&event["delta"]);
                }
            }
            "message_delta" => {
                self.stop = event["delta"]["stop_reason"].clone();
                self.used(&event["usage"]);
            }
            "message_stop" => self.complete = true,
            _ => {}
        }
    }

    fn of_openai(&mut self, chunk: &Value) {
        if chunk["model"].is_string() {
            self.model = chunk["model"].clone();
        }
        self.used(&chunk["usage"]);
        let choice = &chunk["choices"][0];
        if choice["finish_reason"].is_string() {
            self.stop = choice["finish_reason"].clone();
            self.complete = true;
        }
        for name in ["content", "refusal"] {
            if let Some(piece) = choice["delta"][name].as_str() {
                append(&mut self.texts, name, piece);
            }
        }
        for call in choice["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.call(call);
        }
    }

    /// A piece of a call. Some servers send calls whole and don't count them: a new id is a new call.
    fn call(&mut self, piece: &Value) {
        let id = piece["id"].as_str().filter(|id| !id.is_empty());
        let index = piece["index"].as_u64();
        let same = |block: &Block| match index {
            Some(index) => block.index == index && id.is_none_or(|id| block.members["id"] == id),
            None => id.is_none(),
        };
        let at = self.blocks.iter().rposition(same).unwrap_or_else(|| {
            let mut members = Map::new();
            members.insert("id".to_owned(), piece["id"].clone());
            self.blocks.push(Block {
                index: index.unwrap_or_default(),
                members,
                input: String::new(),
            });
            self.blocks.len() - 1
        });
        let block = &mut self.blocks[at];
        if let Some(name) = piece["function"]["name"].as_str() {
            append(&mut block.members, "name", name);
        }
        if let Some(arguments) = piece["function"]["arguments"].as_str() {
            block.input.push_str(arguments);
        }
    }

    /// Counts are told anew as they grow.
    fn used(&mut self, usage: &Value) {
        for (name, count) in usage.as_object().into_iter().flatten() {
            if !count.is_null() {
                self.usage.insert(name.clone(), count.clone());
            }
        }
    }

    fn message(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(Block::json).collect();
        format!(
            r#"{{"type":"message","role":"assistant","model":{},"content":[{}],"stop_reason":{},"usage":{}}}"#,
            self.model,
            blocks.join(","),
            self.stop,
            Value::Object(self.usage.clone())
        )
    }

    fn completion(&self) -> String {
        let mut message = self.texts.clone();
        message.insert("role".to_owned(), "assistant".into());
        message.entry("content").or_insert(Value::Null);
        if !self.blocks.is_empty() {
            let calls = self.blocks.iter().map(|block| {
                let function = json!({"name": block.members.get("name"), "arguments": block.input});
                json!({"id": block.members["id"], "type": "function", "function": function})
            });
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.stop});
        json!({"model": self.model, "choices": [choice], "usage": self.usage}).to_string()
    }
}

impl Block {
    fn add(&mut self, delta: &Value) {
        for name in ["text", "thinking", "signature"] {
            if let Some(piece) = delta[name].as_str() {
                append(&mut self.members, name, piece);
            }
        }
        if let Some(piece) = delta["partial_json"].as_str() {
            self.input.push_str(piece);
        }
        if let Some(citation) = delta.get("citation") {
            let known = self.members.entry("citations").or_insert(Value::Null);
            if !known.is_array() {
                *known = json!([]);
            }
            if let Some(known) = known.as_array_mut() {
                known.push(citation.clone());
            }
        }
    }

    /// The block. An input keeps its digits; one that is no JSON stands there as a text, which is no input.
    fn json(&self) -> String {
        if self.input.trim().is_empty() {
            return Value::Object(self.members.clone()).to_string();
        }
        let input = match serde_json::from_str::<&RawValue>(&self.input) {
            Ok(input) => input.get().to_owned(),
            Err(_) => Value::from(self.input.as_str()).to_string(),
        };
        let mut members = self.members.clone();
        members.remove("input");
        let others = Value::Object(members).to_string();
        // It has a type, an id and a name at least, so that a comma follows.
        let open = others.strip_suffix('}').unwrap_or(&others);
        format!("{open},\"input\":{input}}}")
    }
}

fn append(members: &mut Map<String, Value>, name: &str, piece: &str) {
    let known = members.entry(name).or_insert_with(|| "".into());
    match known {
        Value::String(text) => text.push_str(piece),
        other => *other = piece.into(),
    }
}

#[cfg(test)]
mod tests;
