//! The chunks of chat completions, and the body that they add up to.

use std::borrow::Cow;

use crate::json::Object;
use crate::transcript::assembly::block::{Block, member, piece};
use crate::transcript::assembly::body::{Assembly, index, json};
use crate::transcript::formats::begins_another;

impl Assembly {
    /// Takes a chunk.
    pub(crate) fn of_openai(
        &mut self,
        chunk: &Object,
        choice: Option<&Object>,
    ) -> Result<(), String> {
        if let Some(model) = chunk.get("model").filter(|model| !model.is_null()) {
            self.model = json(Some(model));
        }
        self.used(chunk);
        let Some(choice) = choice else {
            return Ok(());
        };
        // Some servers send an empty one until there is one.
        if piece(choice, "finish_reason")?.is_some_and(|reason| !reason.is_empty()) {
            self.stop = json(choice.get("finish_reason"));
            self.complete = true;
        }
        let Some(delta) = choice.object("delta") else {
            return Ok(());
        };
        for name in ["content", "refusal"] {
            if let Some(piece) = piece(&delta, name)? {
                self.texts.add(name, &piece);
            }
        }
        let calls = delta.list("tool_calls").unwrap_or_default();
        calls.into_iter().try_for_each(|call| {
            let call = call.object().ok_or("has a call that is no object")?;
            self.call(&call)
        })
    }

    /// A piece of a call. Some servers send calls whole and don't count them: a new id is a new call. Some repeat the name.
    /// Nothing says that a call is whole but the begin of the next one; and where the calls come in turns, that does not.
    fn call(&mut self, call: &Object) -> Result<(), String> {
        let given = |object: &Object, name| {
            let text = piece(object, name)?.filter(|text| !text.is_empty());
            Ok::<_, String>(text.map(Cow::into_owned))
        };
        let id = given(call, "id")?;
        let function = call.object("function");
        let function = function.as_ref();
        let name = function.map(|function| given(function, "name"));
        let name = name.transpose()?.flatten();
        let arguments = function.and_then(|function| function.get("arguments"));
        let arguments = match arguments.filter(|arguments| !arguments.is_null()) {
            None => "".into(),
            Some(json) if json.kind() == "a string" => {
                let halved = "has `arguments` with a lone surrogate";
                json.text().ok_or(halved)?
            }
            // Some servers send an object, which is whole.
            Some(json) => json.get().into(),
        };
        let index = index(call);
        let known = match index {
            Some(index) => self.places.get(&index).copied(),
            None => self.blocks.len().checked_sub(1),
        };
        let known = known.filter(|at| {
            let known = &self.blocks[*at];
            let ids = (known.id.as_deref(), id.as_deref());
            let begins = name.is_some() && !arguments.trim().is_empty();
            !begins_another(ids, known.seems_whole() && begins)
        });
        let at = known.unwrap_or_else(|| {
            if let Some(last) = self.blocks.last_mut() {
                last.whole = last.has_input();
            }
            self.begun += 1;
            self.begin(Block::of_call(call), index)
        });
        let block = &mut self.blocks[at];
        if !block.whole {
            block.id = block.id.take().or(id);
            block.name = block.name.take().or(name);
        }
        block.grow(&arguments)
    }

    /// The body, each part on one line by itself.
    pub(crate) fn completion(&self) -> String {
        let mut message: Vec<String> = self.texts.members().collect();
        message.push(member("role", r#""assistant""#));
        if self.texts.get("content").is_none() {
            message.push(member("content", "null"));
        }
        if !self.blocks.is_empty() {
            let calls: Vec<String> = self.blocks.iter().map(Block::function_call).collect();
            message.push(member("tool_calls", &format!("[{}]", calls.join(","))));
        }
        format!(
            r#"{{"model":{},"choices":[{{"index":0,"message":{{{}}},"finish_reason":{}}}],"usage":{}}}"#,
            self.model,
            message.join(","),
            self.stop,
            self.usage()
        )
    }
}
