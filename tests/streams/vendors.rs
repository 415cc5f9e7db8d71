//! One message in the words of each vendor: as a stream, and as the document that it adds up to.

use serde_json::{Value, json};

/// A call: its id, its name, and the text of its input.
pub type Asked<'a> = (&'a str, &'a str, &'a str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Anthropic,
    Chat,
    Responses,
}

/// An event as it is sent.
pub fn event(data: &Value) -> String {
    let kind = data["type"].as_str().unwrap_or("message");
    format!("event: {kind}\ndata: {data}\n\n")
}

/// The begin of an Anthropic message.
pub fn start() -> String {
    event(
        &json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "stop_reason": null}}),
    )
}

/// A call of an Anthropic message, its input in pieces of `length` characters; all but the end of its block.
pub fn block(index: usize, (id, name, input): Asked, length: usize) -> String {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let mut text =
        event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
    let characters: Vec<char> = input.chars().collect();
    for piece in characters.chunks(length) {
        let delta =
            json!({"type": "input_json_delta", "partial_json": piece.iter().collect::<String>()});
        text += &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    text
}

/// The end of a block.
pub fn stop(index: usize) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

/// A whole call of an Anthropic message.
pub fn call(index: usize, asked: Asked) -> String {
    block(index, asked, 5) + &stop(index)
}

/// The end of an Anthropic message.
pub fn end(reason: &str) -> String {
    event(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}}),
    ) + &event(&json!({"type": "message_stop"}))
}

impl Vendor {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Chat, Self::Responses];

    /// The events of a message.
    pub fn events(self, calls: &[Asked], cut_off: bool) -> Vec<String> {
        let text = match self {
            Self::Anthropic => {
                let calls = calls
                    .iter()
                    .enumerate()
                    .map(|(index, asked)| call(index, *asked));
                let end = end(if cut_off { "max_tokens" } else { "tool_use" });
                start() + &calls.collect::<String>() + &event(&json!({"type": "ping"})) + &end
            }
            Self::Chat => chat(calls, cut_off),
            Self::Responses => responses(calls, cut_off),
        };
        text.split_inclusive("\n\n").map(str::to_owned).collect()
    }

    /// The document that they add up to.
    pub fn document(self, calls: &[Asked], cut_off: bool) -> Value {
        let list = |call: fn(&Asked) -> Value| calls.iter().map(call).collect::<Vec<Value>>();
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
                "output": list(|asked| item(*asked)),
            }),
        }
    }
}

fn chat(calls: &[Asked], cut_off: bool) -> String {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!(
            "data: {}\n\n",
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})
        )
    };
    let mut text = chunk(json!({"role": "assistant", "content": null}), None);
    for (index, (id, name, input)) in calls.iter().enumerate() {
        let begin = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        text += &chunk(json!({"tool_calls": [begin]}), None);
        let piece = json!({"index": index, "function": {"arguments": input}});
        text += &chunk(json!({"tool_calls": [piece]}), None);
    }
    text += &chunk(
        json!({}),
        Some(if cut_off { "length" } else { "tool_calls" }),
    );
    text + "data: [DONE]\n\n"
}

fn item((id, name, input): Asked) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": input, "status": "completed"})
}

fn responses(calls: &[Asked], cut_off: bool) -> String {
    let response = |status: &str| json!({"id": "resp_1", "object": "response", "status": status});
    let mut text = event(&json!({"type": "response.created", "response": response("in_progress")}));
    for (index, asked) in calls.iter().enumerate() {
        let begun = item((asked.0, asked.1, ""));
        text += &event(
            &json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        text += &event(
            &json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": asked.2}),
        );
        text += &event(
            &json!({"type": "response.output_item.done", "output_index": index, "item": item(*asked)}),
        );
    }
    let status = if cut_off { "incomplete" } else { "completed" };
    text + &event(&json!({"type": format!("response.{status}"), "response": response(status)}))
}
