//! Messages in the format of each vendor, as a stream and as the equivalent document.

use serde_json::{Value, json};

/// A call: its ID, its tool, and its input as JSON text.
pub type StreamedCall<'a> = (&'a str, &'a str, &'a str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Anthropic,
    Chat,
    Responses,
}

/// Returns a server-sent event.
pub fn sse_event(data: &Value) -> String {
    let kind = data["type"].as_str().unwrap_or("message");
    format!("event: {kind}\ndata: {data}\n\n")
}

/// Returns the event that begins an Anthropic message.
pub fn message_start() -> String {
    sse_event(
        &json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "stop_reason": null}}),
    )
}

/// Returns the events of a call in an Anthropic message, with its input in parts of `length` characters. The event that
/// ends its block is missing.
pub fn open_call_block(index: usize, (id, name, input): StreamedCall, length: usize) -> String {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let mut text =
        sse_event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
    let characters: Vec<char> = input.chars().collect();
    for part in characters.chunks(length) {
        let delta =
            json!({"type": "input_json_delta", "partial_json": part.iter().collect::<String>()});
        text += &sse_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    text
}

/// Returns the event that ends a block.
pub fn block_stop(index: usize) -> String {
    sse_event(&json!({"type": "content_block_stop", "index": index}))
}

/// Returns the events of a complete call in an Anthropic message.
pub fn call_block(index: usize, streamed_call: StreamedCall) -> String {
    open_call_block(index, streamed_call, 5) + &block_stop(index)
}

/// Returns the events that end an Anthropic message.
pub fn message_end(reason: &str) -> String {
    sse_event(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}}),
    ) + &sse_event(&json!({"type": "message_stop"}))
}

impl Vendor {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Chat, Self::Responses];

    /// Returns the events of a message with these calls.
    pub fn events(self, calls: &[StreamedCall], cut_off: bool) -> Vec<String> {
        let text = match self {
            Self::Anthropic => {
                let calls = calls
                    .iter()
                    .enumerate()
                    .map(|(index, streamed_call)| call_block(index, *streamed_call));
                let end = message_end(if cut_off { "max_tokens" } else { "tool_use" });
                message_start()
                    + &calls.collect::<String>()
                    + &sse_event(&json!({"type": "ping"}))
                    + &end
            }
            Self::Chat => chat_events(calls, cut_off),
            Self::Responses => responses_events(calls, cut_off),
        };
        text.split_inclusive("\n\n").map(str::to_owned).collect()
    }

    /// Returns the document that is equivalent to the stream.
    pub fn document(self, calls: &[StreamedCall], cut_off: bool) -> Value {
        let list =
            |call: fn(&StreamedCall) -> Value| calls.iter().map(call).collect::<Vec<Value>>();
        match self {
            Self::Anthropic => json!({
                "type": "message",
                "role": "assistant",
                "content": list(|(id, name, input)| {
                    let input: Value = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                }),
                "stop_reason": if cut_off { "max_tokens" } else { "tool_use" },
            }),
            Self::Chat => {
                let calls = list(
                    |(id, name, input)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": input}}),
                );
                let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
                json!({"choices": [{"index": 0, "message": message, "finish_reason": if cut_off { "length" } else { "tool_calls" }}]})
            }
            Self::Responses => json!({
                "object": "response",
                "status": if cut_off { "incomplete" } else { "completed" },
                "output": list(|call| function_call_item(*call)),
            }),
        }
    }
}

fn chat_events(calls: &[StreamedCall], cut_off: bool) -> String {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!(
            "data: {}\n\n",
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})
        )
    };
    let mut text = chunk(json!({"role": "assistant", "content": null}), None);
    for (index, (id, name, input)) in calls.iter().enumerate() {
        let start = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        text += &chunk(json!({"tool_calls": [start]}), None);
        let part = json!({"index": index, "function": {"arguments": input}});
        text += &chunk(json!({"tool_calls": [part]}), None);
    }
    text += &chunk(
        json!({}),
        Some(if cut_off { "length" } else { "tool_calls" }),
    );
    text + "data: [DONE]\n\n"
}

fn function_call_item((id, name, input): StreamedCall) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": input, "status": "completed"})
}

fn responses_events(calls: &[StreamedCall], cut_off: bool) -> String {
    let response = |status: &str| json!({"id": "resp_1", "object": "response", "status": status});
    let mut text =
        sse_event(&json!({"type": "response.created", "response": response("in_progress")}));
    for (index, streamed_call) in calls.iter().enumerate() {
        let open_item = function_call_item((streamed_call.0, streamed_call.1, ""));
        text += &sse_event(
            &json!({"type": "response.output_item.added", "output_index": index, "item": open_item}),
        );
        text += &sse_event(
            &json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": streamed_call.2}),
        );
        text += &sse_event(
            &json!({"type": "response.output_item.done", "output_index": index, "item": function_call_item(*streamed_call)}),
        );
    }
    let status = if cut_off { "incomplete" } else { "completed" };
    text + &sse_event(&json!({"type": format!("response.{status}"), "response": response(status)}))
}
