//! Assembles the chunks of a chat completion into a body.

use std::borrow::Cow;

use crate::json::ParsedObject;
use crate::transcript::assembly::assembler::{ResponseAssembler, block_index, json_or_null};
use crate::transcript::assembly::partial_block::{PartialBlock, format_member, text_piece};
use crate::transcript::formats::begins_another_call;

impl ResponseAssembler {
    /// Adds a chunk; `choice` is its first choice.
    pub(crate) fn handle_openai_chunk(
        &mut self,
        chunk: &ParsedObject,
        choice: Option<&ParsedObject>,
    ) -> Result<(), String> {
        if let Some(model) = chunk.get("model").filter(|model| !model.is_null()) {
            self.model = json_or_null(Some(model));
        }
        self.merge_usage(chunk);
        let Some(choice) = choice else {
            return Ok(());
        };
        // Some servers send an empty reason until there is one.
        if text_piece(choice, "finish_reason")?.is_some_and(|reason| !reason.is_empty()) {
            self.stop_reason = json_or_null(choice.get("finish_reason"));
            self.is_complete = true;
        }
        let Some(delta) = choice.get_object("delta") else {
            return Ok(());
        };
        for name in ["content", "refusal"] {
            if let Some(piece) = text_piece(&delta, name)? {
                self.texts.append(name, &piece);
            }
        }
        let calls = delta.get_elements("tool_calls").unwrap_or_default();
        calls.into_iter().try_for_each(|call| {
            let call = call.object().ok_or("has a call that isn't an object")?;
            self.handle_call_piece(&call)
        })
    }

    /// Adds a piece of a call. Servers differ: some send whole calls without an index, so that only a new id starts a
    /// new call, and some repeat the name in every piece.
    ///
    /// Nothing marks the end of a call but the start of the next one, and not even that if the server alternates
    /// between calls. So the start of a call completes the previous one only if the input of that is valid JSON.
    fn handle_call_piece(&mut self, call: &ParsedObject) -> Result<(), String> {
        let non_empty_text = |object: &ParsedObject, name| {
            let text = text_piece(object, name)?.filter(|text| !text.is_empty());
            Ok::<_, String>(text.map(Cow::into_owned))
        };
        let id = non_empty_text(call, "id")?;
        let function = call.get_object("function");
        let function = function.as_ref();
        let name = function.map(|function| non_empty_text(function, "name"));
        let name = name.transpose()?.flatten();
        let arguments = function.and_then(|function| function.get("arguments"));
        let arguments = match arguments.filter(|arguments| !arguments.is_null()) {
            None => "".into(),
            Some(json) if json.kind() == "a string" => {
                let message = "has `arguments` with a lone surrogate";
                json.to_text().ok_or(message)?
            }
            // Some servers send an object, which is complete.
            Some(json) => json.get().into(),
        };
        let index = block_index(call);
        let candidate = match index {
            Some(index) => self.block_positions.get(&index).copied(),
            None => self.blocks.len().checked_sub(1),
        };
        let known_index = candidate.filter(|at| {
            let known_block = &self.blocks[*at];
            let ids = (known_block.id.as_deref(), id.as_deref());
            let may_begin = name.is_some() && !arguments.trim().is_empty();
            !begins_another_call(ids, known_block.seems_complete() && may_begin)
        });
        let at = known_index.unwrap_or_else(|| {
            if let Some(last) = self.blocks.last_mut() {
                last.is_complete = last.has_valid_input();
            }
            self.calls_started += 1;
            self.add_block(PartialBlock::from_call_piece(call), index)
        });
        let block = &mut self.blocks[at];
        if !block.is_complete {
            block.id = block.id.take().or(id);
            block.name = block.name.take().or(name);
        }
        block.append_input(&arguments)
    }

    /// Returns the body. Each part is put on one line separately.
    pub(crate) fn openai_chat_body(&self) -> String {
        let mut message: Vec<String> = self.texts.members().collect();
        message.push(format_member("role", r#""assistant""#));
        if self.texts.get("content").is_none() {
            message.push(format_member("content", "null"));
        }
        if !self.blocks.is_empty() {
            let calls: Vec<String> = self
                .blocks
                .iter()
                .map(PartialBlock::to_function_call)
                .collect();
            message.push(format_member(
                "tool_calls",
                &format!("[{}]", calls.join(",")),
            ));
        }
        format!(
            r#"{{"model":{},"choices":[{{"index":0,"message":{{{}}},"finish_reason":{}}}],"usage":{}}}"#,
            self.model,
            message.join(","),
            self.stop_reason,
            self.usage_json()
        )
    }
}
