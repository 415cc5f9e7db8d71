//! The events of a streamed answer → the body that the API would have sent at once. One event at a time comes in; when the
//! answer is complete, its body goes out. Calls go out before, each as soon as it is whole, read from the very JSON that
//! stands in the body.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use crate::json::{Json, Object, json_line};
use crate::transcript::assembly::block::{Block, Texts, member};
use crate::transcript::response::{ResponseFault, error, failed, told};
use crate::transcript::stream::{Events, Fault as EventFault};
use crate::types::{Api, Usage};

/// An answer that is arriving.
#[derive(Debug)]
pub struct Assembly {
    pub(crate) api: Api,
    events: Events,
    /// As JSON.
    pub(crate) model: String,
    pub(crate) blocks: Vec<Block>,
    /// Where the last block of an index stands.
    pub(crate) places: HashMap<u64, usize>,
    /// How many calls are among the blocks.
    pub(crate) begun: usize,
    /// How many blocks were looked at for calls, and how many calls were taken from them.
    pub(crate) seen: usize,
    pub(crate) taken: usize,
    /// What stands in the answer beside its blocks: texts of chat completions.
    pub(crate) texts: Texts,
    /// As JSON.
    pub(crate) stop: String,
    /// As JSON, by name.
    usage: BTreeMap<String, String>,
    pub(crate) complete: bool,
    over: bool,
}

impl Assembly {
    /// Nothing has come yet.
    pub fn new(api: Api) -> Self {
        Self {
            api,
            // Who reads the bytes counts them.
            events: Events::new(u64::MAX),
            model: "null".to_owned(),
            blocks: Vec::new(),
            places: HashMap::new(),
            begun: 0,
            seen: 0,
            taken: 0,
            texts: Texts::default(),
            stop: "null".to_owned(),
            usage: BTreeMap::new(),
            complete: false,
            over: false,
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The API's error, or an event that is none.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), ResponseFault> {
        while let Some(data) = self.events.next(&mut bytes).map_err(no_event)? {
            self.event(data.text.trim())?;
        }
        Ok(())
    }

    /// The body; none where the stream ended before it was complete. All calls are whole then.
    ///
    /// # Errors
    /// The API's error.
    pub fn body(&mut self) -> Result<Option<String>, ResponseFault> {
        let rest = self.events.rest().map_err(no_event);
        match rest.and_then(|data| data.map_or(Ok(()), |data| self.event(data.text.trim()))) {
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

    /// Whether nothing follows, whatever the server does with the connection.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The text so far.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(Block::text);
        let content = self.texts.get("content").map(Into::into);
        texts.chain(content).collect()
    }

    /// Who answers, where that was told, and the tokens so far; none where nothing was told of them.
    pub fn spent(&self) -> Option<(Option<String>, Usage)> {
        let counts = self.usage();
        let usage = told(self.api, &Object::read(&counts).ok()??);
        (usage.total() > 0).then(|| (serde_json::from_str(&self.model).ok(), usage))
    }

    fn event(&mut self, data: &str) -> Result<(), ResponseFault> {
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.over |= self.api == Api::OpenAiChat;
            return Ok(());
        }
        let strange = |why: String| ResponseFault::Strange(format!("an event {why}"));
        let object = Object::read(data)
            .map_err(|error| strange(format!("is no JSON: {error}")))?
            .ok_or_else(|| strange("is no object".to_owned()))?;
        if let Some(error) = error(&object) {
            return Err(error);
        }
        match self.api {
            Api::Anthropic => self.of_anthropic(&object).map_err(strange),
            Api::OpenAiChat => {
                let choices = object.list("choices").unwrap_or_default();
                let choice = choices.first().copied().and_then(Json::object);
                if let Some(error) = choice.as_ref().and_then(failed) {
                    return Err(error);
                }
                self.of_openai(&object, choice.as_ref()).map_err(strange)
            }
        }
    }

    /// Takes an event.
    fn of_anthropic(&mut self, event: &Object) -> Result<(), String> {
        let index = index(event).unwrap_or_default();
        let delta = event.object("delta");
        match event.text("type").as_deref().unwrap_or_default() {
            "message_start" => {
                if let Some(message) = event.object("message") {
                    self.model = json(message.get("model"));
                    self.used(&message);
                }
            }
            "content_block_start" => {
                let block = event.object("content_block");
                let block = Block::of_content(&block.ok_or("has no `content_block`")?);
                self.begun += usize::from(block.is_use);
                self.begin(block, Some(index));
            }
            "content_block_delta" => {
                if let (Some(block), Some(delta)) = (self.known(index), delta) {
                    block.add(&delta)?;
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.known(index) {
                    block.whole = true;
                }
            }
            "message_delta" => {
                self.stop = json(delta.and_then(|delta| delta.get("stop_reason")));
                self.used(event);
            }
            "message_stop" => (self.complete, self.over) = (true, true),
            _ => {}
        }
        Ok(())
    }

    /// Where a new block stands.
    pub(crate) fn begin(&mut self, block: Block, index: Option<u64>) -> usize {
        let at = self.blocks.len();
        self.blocks.push(block);
        self.places.insert(index.unwrap_or_default(), at);
        at
    }

    fn known(&mut self, index: u64) -> Option<&mut Block> {
        self.blocks.get_mut(*self.places.get(&index)?)
    }

    /// Counts are told anew as they grow.
    pub(crate) fn used(&mut self, object: &Object) {
        let usage = object.object("usage");
        for (name, count) in usage.iter().flat_map(Object::members) {
            if !count.is_null() {
                self.usage.insert(name.to_string(), json(Some(*count)));
            }
        }
    }

    // Each part of a body is on one line by itself, so that a break in one of them changes nothing in the others.

    fn message(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(Block::json).collect();
        format!(
            r#"{{"type":"message","role":"assistant","model":{},"content":[{}],"stop_reason":{},"usage":{}}}"#,
            self.model,
            blocks.join(","),
            self.stop,
            self.usage()
        )
    }

    pub(crate) fn usage(&self) -> String {
        let counts = self.usage.iter().map(|(name, count)| member(name, count));
        let counts: Vec<String> = counts.collect();
        json_line(&format!("{{{}}}", counts.join(","))).into_owned()
    }
}

/// What the API counts a block by.
pub(crate) fn index(object: &Object) -> Option<u64> {
    object.get("index")?.get().parse().ok()
}

/// A value on one line.
pub(crate) fn json(value: Option<Json>) -> String {
    json_line(value.map_or("null", Json::get)).into_owned()
}

fn no_event(fault: EventFault) -> ResponseFault {
    ResponseFault::Strange(match fault {
        EventFault::NotUtf8 { line } => format!("line {line} is no UTF-8"),
        EventFault::TooLarge { line } => format!("the event at line {line} is too large"),
    })
}
