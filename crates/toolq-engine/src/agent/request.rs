//! The JSON of a request to a model's API, and what an agent takes from the environment.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use toolq_core::json::expect_json;
use toolq_core::os::Environment;
use toolq_core::types::{Outcome, PartialTemplate, Template, TemplatePart};

/// The body of a request for the next response of a model.
#[derive(Serialize)]
pub(crate) struct ChatRequest<'a> {
    pub(crate) model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<SystemPrompt<'a>>,
    pub(crate) messages: ChatMessages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(crate) extra_body: &'a Map<String, Value>,
}

/// The system prompt of the Messages API: a text, or blocks that can be marked.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SystemPrompt<'a> {
    Text(&'a str),
    Blocks(&'a RawValue),
}

/// The messages of a request.
pub(crate) struct ChatMessages<'a> {
    /// The system prompt, where the API takes it as a message.
    pub(crate) system: Option<&'a str>,
    pub(crate) conversation: &'a [Box<RawValue>],
    /// The last message of the conversation, if it is marked for the cache.
    pub(crate) marked_last: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatMessage<'a> {
    System {
        role: &'static str,
        content: &'a str,
    },
    Raw(&'a RawValue),
}

impl Serialize for ChatMessages<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = self.system.map(|content| ChatMessage::System {
            role: "system",
            content,
        });
        let unmarked = self.conversation.len() - usize::from(self.marked_last.is_some());
        let conversation = self.conversation[..unmarked].iter();
        let conversation = conversation.map(|message| &**message);
        let conversation = conversation.chain(self.marked_last);
        serializer.collect_seq(system.into_iter().chain(conversation.map(ChatMessage::Raw)))
    }
}

/// Returns the first message of a conversation, which holds the task.
pub(crate) fn user_message(text: &str) -> Box<RawValue> {
    #[derive(Serialize)]
    struct TaskMessage<'a> {
        role: &'static str,
        content: &'a str,
    }
    let message = TaskMessage {
        role: "user",
        content: text,
    };
    expect_json(serde_json::value::to_raw_value(&message))
}

// Fills in what an agent's declaration takes from the environment.

/// Fills the templates of an agent with values from the environment.
pub(crate) struct EnvTemplates<'e>(pub(crate) &'e Environment);

impl EnvTemplates<'_> {
    /// Fills in the variables of a template whose input values have already been filled in.
    ///
    /// # Errors
    /// The outcome of the call, if a variable is missing.
    pub(crate) fn resolve_partial(&self, draft: &PartialTemplate) -> Result<String, Outcome> {
        let resolved = draft.resolve(&|name| self.0.get(name));
        resolved.map_err(Outcome::MissingVariable)
    }

    /// Fills in the variables of a template that has no input values.
    ///
    /// # Errors
    /// As [`Self::resolve_partial`].
    pub(crate) fn resolve(&self, template: &Template) -> Result<String, Outcome> {
        let segments = template.parts.iter().filter_map(TemplatePart::as_segment);
        self.resolve_partial(&PartialTemplate(segments.collect()))
    }

    /// Like [`Self::resolve`], for a template that may be left out.
    ///
    /// # Errors
    /// As [`Self::resolve_partial`].
    pub(crate) fn resolve_optional(
        &self,
        template: Option<&Template>,
    ) -> Result<Option<String>, Outcome> {
        template.map(|template| self.resolve(template)).transpose()
    }
}
