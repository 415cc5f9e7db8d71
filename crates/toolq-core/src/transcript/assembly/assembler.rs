//! Assembles the events of a streamed response into the body that the API would have sent without streaming.
//!
//! Each call is available as soon as it's complete, before the rest of the body. It's parsed from the same JSON that
//! the body will contain.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use crate::json::{JsonText, ParsedObject, to_json_line};
use crate::transcript::assembly::partial_block::{GrowingTexts, PartialBlock, format_member};
use crate::transcript::response::{ResponseError, find_choice_error, find_error, parse_usage};
use crate::transcript::stream::{SseDecoder, SseError};
use crate::types::{Api, Usage};

/// A response that is arriving as a stream.
#[derive(Debug)]
pub struct ResponseAssembler {
    pub(crate) api: Api,
    sse_decoder: SseDecoder,
    /// Name of the model, as JSON.
    pub(crate) model: String,
    pub(crate) blocks: Vec<PartialBlock>,
    /// Position in `blocks` of the last block with each index.
    pub(crate) block_positions: HashMap<u64, usize>,
    /// Number of calls among the blocks.
    pub(crate) calls_started: usize,
    /// Number of blocks that were searched for calls.
    pub(crate) scanned_blocks: usize,
    /// Number of calls that were taken from those blocks.
    pub(crate) taken_calls: usize,
    /// Texts of the response outside of its blocks. Only chat completions have them.
    pub(crate) texts: GrowingTexts,
    /// Why the response ended, as JSON.
    pub(crate) stop_reason: String,
    /// Token counts by name, as JSON.
    usage_counts: BTreeMap<String, String>,
    pub(crate) is_complete: bool,
    is_finished: bool,
}

impl ResponseAssembler {
    /// Creates an assembler for a response of `api`.
    pub fn new(api: Api) -> Self {
        Self {
            api,
            // The reader of the bytes limits their number.
            sse_decoder: SseDecoder::new(u64::MAX),
            model: "null".to_owned(),
            blocks: Vec::new(),
            block_positions: HashMap::new(),
            calls_started: 0,
            scanned_blocks: 0,
            taken_calls: 0,
            texts: GrowingTexts::default(),
            stop_reason: "null".to_owned(),
            usage_counts: BTreeMap::new(),
            is_complete: false,
            is_finished: false,
        }
    }

    /// Adds the next bytes of the stream.
    ///
    /// # Errors
    /// The API sent an error, or an event is malformed.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), ResponseError> {
        while let Some(data) = self
            .sse_decoder
            .next_event(&mut bytes)
            .map_err(unreadable_event)?
        {
            self.handle_event(data.text.trim())?;
        }
        Ok(())
    }

    /// Ends the stream and returns the body, or `None` if the stream ended before the response was complete. With a
    /// body, all calls are complete.
    ///
    /// # Errors
    /// The API sent an error.
    pub fn finish(&mut self) -> Result<Option<String>, ResponseError> {
        let rest = self.sse_decoder.finish().map_err(unreadable_event);
        match rest.and_then(|data| data.map_or(Ok(()), |data| self.handle_event(data.text.trim())))
        {
            _ if self.is_complete => {}
            Err(error @ ResponseError::Api { .. }) => return Err(error),
            // A malformed last event was cut off.
            Err(ResponseError::Unreadable(_)) | Ok(()) => return Ok(None),
        }
        self.blocks
            .iter_mut()
            .for_each(|block| block.is_complete = true);
        let body = match self.api {
            Api::Anthropic => self.anthropic_body(),
            Api::OpenAiChat => self.openai_chat_body(),
        };
        Ok(Some(body))
    }

    /// Returns whether the response is complete. Its token counts may still follow.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns whether the stream is over, even if the server keeps the connection open.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns the text so far, each text block on its own line.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(PartialBlock::text);
        let content = self.texts.get("content").map(Into::into);
        let texts: Vec<_> = texts.chain(content).collect();
        texts.join("\n")
    }

    /// Returns the name of the model, if known, and the tokens so far. `None` if no tokens have been reported.
    pub fn usage_so_far(&self) -> Option<(Option<String>, Usage)> {
        let counts = self.usage_json();
        let usage = parse_usage(self.api, &ParsedObject::parse(&counts).ok()??);
        (usage.total() > 0).then(|| (serde_json::from_str(&self.model).ok(), usage))
    }

    fn handle_event(&mut self, data: &str) -> Result<(), ResponseError> {
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_finished |= self.api == Api::OpenAiChat;
            return Ok(());
        }
        let unreadable = |why: String| ResponseError::Unreadable(format!("an event {why}"));
        let object = ParsedObject::parse(data)
            .map_err(|error| unreadable(format!("is not valid JSON: {error}")))?
            .ok_or_else(|| unreadable("is not a JSON object".to_owned()))?;
        if let Some(error) = find_error(&object) {
            return Err(error);
        }
        match self.api {
            Api::Anthropic => self.handle_anthropic_event(&object).map_err(unreadable),
            Api::OpenAiChat => {
                let choices = object.get_elements("choices").unwrap_or_default();
                let choice = choices.first().copied().and_then(JsonText::object);
                if let Some(error) = choice.as_ref().and_then(find_choice_error) {
                    return Err(error);
                }
                self.handle_openai_chunk(&object, choice.as_ref())
                    .map_err(unreadable)
            }
        }
    }

    fn handle_anthropic_event(&mut self, event: &ParsedObject) -> Result<(), String> {
        let index = block_index(event).unwrap_or_default();
        let delta = event.get_object("delta");
        match event.get_text("type").as_deref().unwrap_or_default() {
            "message_start" => {
                if let Some(message) = event.get_object("message") {
                    self.model = json_or_null(message.get("model"));
                    self.merge_usage(&message);
                }
            }
            "content_block_start" => {
                let block = event.get_object("content_block");
                let block =
                    PartialBlock::from_content_block(&block.ok_or("has no `content_block`")?);
                self.calls_started += usize::from(block.is_call);
                self.add_block(block, Some(index));
            }
            "content_block_delta" => {
                if let (Some(block), Some(delta)) = (self.block_mut(index), delta) {
                    block.apply_delta(&delta)?;
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.block_mut(index) {
                    block.is_complete = true;
                }
            }
            "message_delta" => {
                self.stop_reason = json_or_null(delta.and_then(|delta| delta.get("stop_reason")));
                self.merge_usage(event);
            }
            "message_stop" => (self.is_complete, self.is_finished) = (true, true),
            _ => {}
        }
        Ok(())
    }

    /// Adds a block and returns its position.
    pub(crate) fn add_block(&mut self, block: PartialBlock, index: Option<u64>) -> usize {
        let at = self.blocks.len();
        self.blocks.push(block);
        self.block_positions.insert(index.unwrap_or_default(), at);
        at
    }

    fn block_mut(&mut self, index: u64) -> Option<&mut PartialBlock> {
        self.blocks.get_mut(*self.block_positions.get(&index)?)
    }

    /// Merges the token counts of an event. APIs report counts repeatedly as they grow, so the last one wins.
    pub(crate) fn merge_usage(&mut self, object: &ParsedObject) {
        let usage = object.get_object("usage");
        for (name, count) in usage.iter().flat_map(ParsedObject::members) {
            if !count.is_null() {
                self.usage_counts
                    .insert(name.to_string(), json_or_null(Some(*count)));
            }
        }
    }

    // Each part of a body is put on one line separately, so that a line break in one part doesn't change the others.

    fn anthropic_body(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(PartialBlock::to_json).collect();
        format!(
            r#"{{"type":"message","role":"assistant","model":{},"content":[{}],"stop_reason":{},"usage":{}}}"#,
            self.model,
            blocks.join(","),
            self.stop_reason,
            self.usage_json()
        )
    }

    pub(crate) fn usage_json(&self) -> String {
        let counts = self
            .usage_counts
            .iter()
            .map(|(name, count)| format_member(name, count));
        let counts: Vec<String> = counts.collect();
        to_json_line(&format!("{{{}}}", counts.join(","))).into_owned()
    }
}

/// Returns the index by which the API identifies a block.
pub(crate) fn block_index(object: &ParsedObject) -> Option<u64> {
    object.get("index")?.get().parse().ok()
}

/// Returns a value as one line of JSON; `null` if it's missing.
pub(crate) fn json_or_null(value: Option<JsonText>) -> String {
    to_json_line(value.map_or("null", JsonText::get)).into_owned()
}

fn unreadable_event(error: SseError) -> ResponseError {
    ResponseError::Unreadable(match error {
        SseError::NotUtf8 { line } => format!("line {line} isn't valid UTF-8"),
        SseError::TooLarge { line } => format!("the event at line {line} is too large"),
    })
}
