//! The events of a streamed answer → the body that the API would have sent at once. One event at a time comes in; when the
//! answer is complete, its body goes out. Calls go out before, each as soon as it is whole, read from the very JSON that
//! stands in the body.

mod block;
mod calls;

use serde_json::{Map, Value, json};

use super::response::{ResponseFault, error, told};
use crate::model::json::Object;
use crate::model::{Api, Usage};
use block::{Block, append};

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
    /// How many calls are among them.
    begun: usize,
    /// How many blocks were looked at for calls, and how many calls were taken from them.
    seen: usize,
    taken: usize,
    /// What stands in the answer beside its blocks: texts of chat completions.
    texts: Map<String, Value>,
    stop: Value,
    usage: Map<String, Value>,
    complete: bool,
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
            begun: 0,
            seen: 0,
            taken: 0,
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

    /// The body; none where the stream ended before it was complete. All calls are whole then.
    ///
    /// # Errors
    /// The API's error.
    pub fn body(&mut self) -> Result<Option<String>, ResponseFault> {
        let line = std::mem::take(&mut self.rest);
        let told = self.line(&String::from_utf8_lossy(&line));
        match told.and_then(|()| self.line("")) {
            _ if self.complete => {}
            Err(error @ ResponseFault::Error { .. }) => return Err(error),
            // What is no event is the begin of one.
            Err(ResponseFault::Strange(_)) | Ok(()) => return Ok(None),
        }
        self.blocks.iter_mut().for_each(|block| block.whole = true);
        let body = match self.api {
            Api::Anthropic => self.message(),
            Api::OpenAiChat => self.completion(),
        };
        Ok(Some(body))
    }

    /// Whether the answer has come to its end. What follows may say what it took.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The text so far.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| &block.members);
        let texts = texts.filter(|members| members.get("type").is_some_and(|kind| kind == "text"));
        let texts = texts.filter_map(|members| members.get("text"));
        let texts = texts.chain(self.texts.get("content"));
        texts.filter_map(Value::as_str).collect()
    }

    /// Who answers, where that was told, and the tokens so far; none where nothing was told of them.
    pub fn spent(&self) -> Option<(Option<&str>, Usage)> {
        let counts = Value::Object(self.usage.clone()).to_string();
        let usage = told(self.api, &Object::read(&counts).ok()??);
        (usage.total() > 0).then(|| (self.model.as_str(), usage))
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
        let fits = match self.api {
            Api::Anthropic => self.of_anthropic(&event),
            Api::OpenAiChat => self.of_openai(&event),
        };
        let late = || strange("has a piece of a call that was whole already".to_owned());
        fits.then_some(()).ok_or_else(late)
    }

    /// Takes an event. False where it adds to a call that was whole.
    fn of_anthropic(&mut self, event: &Value) -> bool {
        let index = event["index"].as_u64().unwrap_or_default();
        let known = self.blocks.iter_mut().rfind(|block| block.index == index);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.model = event["message"]["model"].clone();
                self.used(&event["message"]["usage"]);
            }
            "content_block_start" => {
                let members = event["content_block"].as_object();
                let block = Block::new(index, members.cloned().unwrap_or_default());
                self.begun += usize::from(block.is_use());
                self.blocks.push(block);
            }
            "content_block_delta" => return known.is_none_or(|block| block.add(&event["delta"])),
            "content_block_stop" => known.into_iter().for_each(|block| block.whole = true),
            "message_delta" => {
                self.stop = event["delta"]["stop_reason"].clone();
                self.used(&event["usage"]);
            }
            "message_stop" => self.complete = true,
            _ => {}
        }
        true
    }

    /// Takes a chunk. False where it adds to a call that was whole.
    fn of_openai(&mut self, chunk: &Value) -> bool {
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
        let calls = choice["delta"]["tool_calls"].as_array();
        calls.into_iter().flatten().all(|call| self.call(call))
    }

    /// A piece of a call. Some servers send calls whole and don't count them: a new id is a new call. Some repeat the name.
    /// Nothing says that a call is whole but the begin of the next one; and where the calls come in turns, that does not.
    fn call(&mut self, piece: &Value) -> bool {
        let id = piece["id"].as_str().filter(|id| !id.is_empty());
        let index = piece["index"].as_u64();
        let same = |block: &Block| match index {
            Some(index) => block.index == index && id.is_none_or(|id| block.members["id"] == id),
            None => id.is_none(),
        };
        let at = self.blocks.iter().rposition(same).unwrap_or_else(|| {
            if let Some(last) = self.blocks.last_mut() {
                last.whole = last.has_input();
            }
            let members = [("id".to_owned(), piece["id"].clone())];
            let members = members.into_iter().collect();
            self.blocks
                .push(Block::new(index.unwrap_or_default(), members));
            self.begun += 1;
            self.blocks.len() - 1
        });
        let block = &mut self.blocks[at];
        let name = piece["function"]["name"].as_str();
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let known = block.members.entry("name");
            known.or_insert_with(|| name.into());
        }
        match &piece["function"]["arguments"] {
            Value::Null => true,
            Value::String(arguments) => block.grow(arguments),
            // Some servers send an object, which is whole.
            arguments => block.grow(&arguments.to_string()),
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
            let calls = self.blocks.iter().map(Block::function_call);
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.stop});
        json!({"model": self.model, "choices": [choice], "usage": self.usage}).to_string()
    }
}

#[cfg(test)]
mod tests;
