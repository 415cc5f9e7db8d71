//! Assembles a streamed response into the body that the API would have sent without streaming.

use std::collections::BTreeMap;

use crate::json::{JsonText, ParsedObject, to_json_line};
use crate::transcript::document_error::DocumentResult;
use crate::transcript::response_usage::parse_usage;
use crate::transcript::stream::block::Block;
use crate::transcript::stream::block_content::{GrowingTexts, format_member, text_piece};
use crate::types::{Api, Dialect, Usage};

/// What the body of a response has, apart from its blocks.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    /// The message has its end. Token counts may follow.
    pub is_complete: bool,
    /// The blocks of the message, once its calls are complete.
    pub blocks: Vec<Block>,
    /// Name of the model, as JSON.
    model: String,
    /// Texts of the response outside of its blocks. Only chat completions have them.
    texts: GrowingTexts,
    /// Why the response ended, as JSON.
    stop_reason: String,
    /// Token counts by name, as JSON.
    usage_counts: BTreeMap<String, String>,
}

impl Default for ResponseBody {
    fn default() -> Self {
        Self {
            is_complete: false,
            blocks: Vec::new(),
            model: "null".to_owned(),
            texts: GrowingTexts::default(),
            stop_reason: "null".to_owned(),
            usage_counts: BTreeMap::new(),
        }
    }
}

impl ResponseBody {
    /// Takes over the model and the token counts of an event. APIs report counts repeatedly as they grow, so the last
    /// ones win.
    pub fn add_header(&mut self, object: &ParsedObject) {
        if let Some(model) = object.get("model").filter(|model| !model.is_null()) {
            self.model = json_line(model);
        }
        let usage = object.get_object("usage");
        for (name, count) in usage.iter().flat_map(ParsedObject::members) {
            if !count.is_null() {
                self.usage_counts
                    .insert(name.to_string(), json_line(*count));
            }
        }
    }

    /// Adds the pieces of text in a delta of chat completions.
    ///
    /// # Errors
    /// A text has a lone surrogate.
    pub fn add_texts<'a>(&mut self, delta: &ParsedObject<'a>) -> DocumentResult<'a> {
        for name in ["content", "refusal"] {
            if let Some(piece) = text_piece(delta, name)? {
                self.texts.append(name, &piece);
            }
        }
        Ok(())
    }

    pub fn set_stop_reason(&mut self, reason: Option<JsonText>) {
        if let Some(reason) = reason {
            self.stop_reason = json_line(reason);
        }
    }

    /// Returns the text so far, each text block on its own line. `blocks` are those of the message.
    pub fn text(&self, blocks: &[Block]) -> String {
        let contents = blocks.iter().filter_map(|block| block.content.as_ref());
        let texts = contents.filter_map(|content| content.text());
        let content = self.texts.get("content").map(Into::into);
        let texts: Vec<_> = texts.chain(content).collect();
        texts.join("\n")
    }

    /// Returns the name of the model, if known, and the tokens so far. `None` if no tokens have been reported.
    pub fn usage_so_far(&self, api: Api) -> Option<(Option<String>, Usage)> {
        let counts = self.usage_json();
        let usage = parse_usage(api, &ParsedObject::parse(&counts).ok()??);
        (usage.total() > 0).then(|| (serde_json::from_str(&self.model).ok(), usage))
    }

    // Each part of a body is put on one line separately, so that a line break in one part doesn't change the others.

    /// Returns the body of a complete response.
    pub fn to_json(&self, api: Api) -> String {
        let dialect = Dialect::from(api);
        let blocks = self.blocks.iter();
        let blocks: Vec<String> = blocks.filter_map(|block| block.to_json(dialect)).collect();
        let blocks = format!("[{}]", blocks.join(","));
        let (model, stop_reason, usage) = (&self.model, &self.stop_reason, self.usage_json());
        if api == Api::Anthropic {
            return format!(
                r#"{{"type":"message","role":"assistant","model":{model},"content":{blocks},"stop_reason":{stop_reason},"usage":{usage}}}"#
            );
        }
        let mut message: Vec<String> = self.texts.members().collect();
        message.push(format_member("role", r#""assistant""#));
        if self.texts.get("content").is_none() {
            message.push(format_member("content", "null"));
        }
        if !self.blocks.is_empty() {
            message.push(format_member("tool_calls", &blocks));
        }
        let message = message.join(",");
        format!(
            r#"{{"model":{model},"choices":[{{"index":0,"message":{{{message}}},"finish_reason":{stop_reason}}}],"usage":{usage}}}"#
        )
    }

    fn usage_json(&self) -> String {
        let counts = self.usage_counts.iter();
        let counts: Vec<String> = counts
            .map(|(name, count)| format_member(name, count))
            .collect();
        to_json_line(&format!("{{{}}}", counts.join(","))).into_owned()
    }
}

fn json_line(value: JsonText) -> String {
    to_json_line(value.get()).into_owned()
}
