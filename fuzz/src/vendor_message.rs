//! A message with calls, as each vendor sends it: as a document, and as a stream.

use serde_json::Value;

use crate::choices::Choices;

/// Maximum number of calls in a message.
const MAX_CALLS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Anthropic,
    Chat,
    Responses,
}

struct MessageCall {
    id: String,
    name: String,
    /// JSON, or any text for `OpenAI`.
    input: String,
}

/// A message, built from choices.
pub(crate) struct VendorMessage {
    vendor: Vendor,
    calls: Vec<MessageCall>,
    /// Whether it hit a token limit.
    is_cut_off: bool,
    /// How many characters of an input an event has at most.
    piece_length: usize,
    /// Whether events come in between that mean nothing.
    has_pings: bool,
}

impl VendorMessage {
    pub(crate) fn from_choices(vendor: Vendor, choices: &mut Choices<'_>) -> Self {
        let shape = choices.byte();
        let mut message = Self {
            vendor,
            calls: Vec::new(),
            is_cut_off: shape & 1 != 0,
            has_pings: shape & 2 != 0,
            piece_length: 1 + usize::from(shape >> 2) % 16,
        };
        while message.calls.len() < MAX_CALLS && !choices.is_empty() {
            let (id, name) = (choices.text(), choices.text());
            let input = choices.text();
            // A chunk without an id and a name is a piece of another call.
            let says_nothing = matches!(id.trim(), "" | "null") && name.is_empty();
            let id = if says_nothing {
                format!("id {}", message.calls.len())
            } else {
                id
            };
            let is_object =
                serde_json::from_str::<Value>(&input).is_ok_and(|input| input.is_object());
            let needs_object = vendor == Vendor::Anthropic;
            let input = if needs_object && !is_object {
                format!("{{\"text\":{}}}", Value::from(input))
            } else {
                input
            };
            message.calls.push(MessageCall { id, name, input });
        }
        message
    }

    /// Returns whether each call has a name and an input that is JSON.
    pub(crate) fn is_whole(&self) -> bool {
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        let mut calls = self.calls.iter();
        calls.all(|call| !call.name.is_empty() && is_json(&call.input))
    }

    /// Returns the document.
    pub(crate) fn document(&self) -> String {
        let calls = self.calls.iter().map(|call| self.call_json(call));
        let calls = calls.collect::<Vec<_>>().join(",");
        let reason = self.stop_reason();
        match self.vendor {
            Vendor::Anthropic => format!(
                r#"{{"type":"message","role":"assistant","content":[{calls}],"stop_reason":"{reason}"}}"#
            ),
            Vendor::Chat => format!(
                r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{calls}]}},"finish_reason":"{reason}"}}]}}"#
            ),
            Vendor::Responses => {
                format!(r#"{{"object":"response","status":"{reason}","output":[{calls}]}}"#)
            }
        }
    }

    /// Returns the stream.
    pub(crate) fn stream(&self) -> String {
        let mut stream = EventText::default();
        match self.vendor {
            Vendor::Anthropic => self.push_anthropic_events(&mut stream),
            Vendor::Chat => self.push_chat_events(&mut stream),
            Vendor::Responses => self.push_responses_events(&mut stream),
        }
        stream.0
    }

    fn stop_reason(&self) -> &'static str {
        match (self.vendor, self.is_cut_off) {
            (Vendor::Anthropic, false) => "tool_use",
            (Vendor::Anthropic, true) => "max_tokens",
            (Vendor::Chat, false) => "tool_calls",
            (Vendor::Chat, true) => "length",
            (Vendor::Responses, false) => "completed",
            (Vendor::Responses, true) => "incomplete",
        }
    }

    fn call_json(&self, call: &MessageCall) -> String {
        let MessageCall { id, name, input } = call;
        let (id, name) = (quote(id), quote(name));
        match self.vendor {
            Vendor::Anthropic => {
                format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
            }
            Vendor::Chat => format!(
                r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{}}}}}"#,
                quote(input)
            ),
            Vendor::Responses => function_call_item(&id, &name, input),
        }
    }

    /// Splits a text into the pieces that events deliver.
    fn pieces(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters.chunks(self.piece_length);
        pieces
            .map(|piece| quote(&piece.iter().collect::<String>()))
            .collect()
    }

    fn push_anthropic_events(&self, stream: &mut EventText) {
        stream.push(
            r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#,
        );
        for (index, call) in self.calls.iter().enumerate() {
            if self.has_pings {
                stream.push(r#"{"type":"ping"}"#);
            }
            let (id, name) = (quote(&call.id), quote(&call.name));
            stream.push(&format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}}}"#));
            for piece in self.pieces(&call.input) {
                stream.push(&format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{piece}}}}}"#));
            }
            stream.push(&format!(
                r#"{{"type":"content_block_stop","index":{index}}}"#
            ));
        }
        let reason = self.stop_reason();
        stream.push(&format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#
        ));
        stream.push(r#"{"type":"message_stop"}"#);
    }

    fn push_chat_events(&self, stream: &mut EventText) {
        let chunk = |delta: &str, reason: &str| {
            format!(
                r#"{{"id":"c","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}"#
            )
        };
        stream.push(&chunk(r#"{"role":"assistant","content":null}"#, "null"));
        for (index, call) in self.calls.iter().enumerate() {
            let (id, name) = (quote(&call.id), quote(&call.name));
            stream.push(&chunk(&format!(r#"{{"tool_calls":[{{"index":{index},"id":{id},"type":"function","function":{{"name":{name},"arguments":""}}}}]}}"#), "null"));
            for piece in self.pieces(&call.input) {
                stream.push(&chunk(&format!(r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{piece}}}}}]}}"#), "null"));
            }
        }
        stream.push(&chunk("{}", &quote(self.stop_reason())));
        stream.push("[DONE]");
    }

    fn push_responses_events(&self, stream: &mut EventText) {
        let response =
            |status: &str| format!(r#"{{"id":"r","object":"response","status":"{status}"}}"#);
        stream.push(&format!(
            r#"{{"type":"response.created","response":{}}}"#,
            response("in_progress")
        ));
        for (index, call) in self.calls.iter().enumerate() {
            let (id, name) = (quote(&call.id), quote(&call.name));
            let item = function_call_item(&id, &name, "");
            stream.push(&format!(
                r#"{{"type":"response.output_item.added","output_index":{index},"item":{item}}}"#
            ));
            for piece in self.pieces(&call.input) {
                stream.push(&format!(r#"{{"type":"response.function_call_arguments.delta","output_index":{index},"delta":{piece}}}"#));
            }
            let item = function_call_item(&id, &name, &call.input);
            stream.push(&format!(
                r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#
            ));
        }
        let status = self.stop_reason();
        stream.push(&format!(
            r#"{{"type":"response.{status}","response":{}}}"#,
            response(status)
        ));
    }
}

/// The text of a stream of events.
#[derive(Default)]
struct EventText(String);

impl EventText {
    fn push(&mut self, data: &str) {
        self.0.extend(["data: ", data, "\n\n"]);
    }
}

fn function_call_item(id: &str, name: &str, input: &str) -> String {
    let input = quote(input);
    format!(
        r#"{{"type":"function_call","id":"f","call_id":{id},"name":{name},"arguments":{input},"status":"completed"}}"#
    )
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}
