//! The endpoint of a model's API: what stays the same in all requests of a conversation.

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue,
};
use reqwest::{Body, Method, Request};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use url::Url;

use crate::agent::error::AgentError;
use crate::environment::{resolve_optional, resolve_template};
use crate::http::{build_failure, resolve_headers};
use toolq_core::json::{ParsedObject, expect_json};
use toolq_core::os::Environment;
use toolq_core::types::{AgentBacking, AgentFailure, Api};

const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
/// The version of the Messages API that requests are written for.
const ANTHROPIC_API_VERSION: &str = "2023-06-01";
/// The host whose newer models accept only `max_completion_tokens`. Other servers of its API know the older
/// `max_tokens`.
const OPENAI_HOST: &str = "api.openai.com";

/// What stays the same in all requests of a conversation.
pub(crate) struct ModelEndpoint {
    api: Api,
    pub(crate) url: Url,
    headers: HeaderMap,
    system: Option<String>,
    max_tokens: u32,
    extra_body: Map<String, Value>,
    cache: bool,
}

impl ModelEndpoint {
    /// Resolves the endpoint, API key and system prompt of an agent.
    ///
    /// # Errors
    /// Why no request can be sent.
    pub(crate) fn from_backing(
        backing: &AgentBacking,
        environment: &Environment,
    ) -> Result<Self, AgentError> {
        let endpoint = resolve_template(&backing.endpoint, environment)?;
        let url = endpoint_url(&endpoint, backing.api);
        let url = url.ok_or_else(|| AgentFailure::InvalidEndpoint {
            declared: backing.endpoint.to_string(),
            resolved: endpoint,
        })?;
        let origin = url.origin().ascii_serialization();
        let api_key = resolve_optional(backing.api_key.as_ref(), environment)?;
        let mut headers = request_headers(backing.api, api_key.as_deref()).map_err(|_| {
            let why = "the API key contains characters that aren't allowed in a header";
            build_failure(origin.clone(), why.to_owned())
        })?;
        let declared = backing.headers.iter();
        let declared = declared.map(|(name, value)| (name, resolve_template(value, environment)));
        // Those of tools.yaml replace the others.
        headers.extend(resolve_headers(declared, &origin, true)?);
        Ok(Self {
            api: backing.api,
            url,
            headers,
            system: resolve_optional(backing.system.as_ref(), environment)?,
            max_tokens: backing.max_tokens,
            extra_body: backing.extra_body.clone(),
            cache: backing.cache && backing.api == Api::Anthropic,
        })
    }

    /// Builds the body of a request for the next response of `model`.
    pub(crate) fn build_body(
        &self,
        model: &str,
        messages: &[Box<RawValue>],
        tools: Option<&RawValue>,
    ) -> String {
        let system = self.system.as_deref();
        let marked_system = system.filter(|_| self.cache).and_then(mark_text);
        let marked_tools = tools.filter(|_| self.cache);
        let marked_tools = marked_tools.and_then(|tools| mark_last(tools.get()));
        let last_message = messages.last().filter(|_| self.cache);
        let marked_message = last_message.and_then(|message| mark_message(message));
        let is_openai = self.api == Api::OpenAiChat;
        let is_openai_host = is_openai && self.url.host_str() == Some(OPENAI_HOST);
        let body = ChatRequest {
            model,
            max_tokens: (!is_openai_host).then_some(self.max_tokens),
            max_completion_tokens: is_openai_host.then_some(self.max_tokens),
            system: match (is_openai, &marked_system) {
                (true, _) => None,
                (false, Some(marked)) => Some(SystemPrompt::Blocks(marked)),
                (false, None) => system.map(SystemPrompt::Text),
            },
            messages: ChatMessages {
                system: system.filter(|_| is_openai),
                conversation: messages,
                marked_last: marked_message.as_deref(),
            },
            tools: marked_tools.as_deref().or(tools),
            extra_body: &self.extra_body,
        };
        expect_json(serde_json::to_string(&body))
    }

    pub(crate) fn build_request(&self, body: String) -> Request {
        let mut request = Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(Body::from(body));
        request
    }

    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

fn request_headers(api: Api, api_key: Option<&str>) -> Result<HeaderMap, InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if api == Api::Anthropic {
        headers.insert(
            ANTHROPIC_VERSION_HEADER,
            HeaderValue::from_static(ANTHROPIC_API_VERSION),
        );
    }
    if let Some(api_key) = api_key {
        let (name, value) = match api {
            Api::Anthropic => (API_KEY_HEADER, HeaderValue::from_str(api_key)?),
            Api::OpenAiChat => (
                AUTHORIZATION,
                HeaderValue::from_str(&format!("Bearer {api_key}"))?,
            ),
        };
        let mut value = value;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the URL to send requests to.
///
/// An endpoint that ends in the API's own path, such as `/messages`, is complete. One that ends in a version gets that
/// path appended; any other gets `/v1` and the path. Returns `None` if the endpoint isn't an http or https URL.
fn endpoint_url(endpoint: &str, api: Api) -> Option<Url> {
    let mut url = Url::parse(endpoint).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return None;
    }
    let api_path = match api {
        Api::Anthropic => "/messages",
        Api::OpenAiChat => "/chat/completions",
    };
    let path = url.path().trim_end_matches('/').to_owned();
    let last_segment = path.rsplit('/').next().unwrap_or_default();
    let is_version = last_segment
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let full_path = match path.as_str() {
        path if path.ends_with(api_path) => path.to_owned(),
        path if is_version => format!("{path}{api_path}"),
        path => format!("{path}/v1{api_path}"),
    };
    url.set_path(&full_path);
    Some(url)
}

// Marks the parts of a request that the Messages API is to cache: the system prompt, the tools, and the conversation
// so far. The next request begins with the same parts, and pays a tenth of their price.

/// The end of an object that the cache is to include.
const MARKED_END: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// Returns a text as a list of one marked block. Returns `None` for an empty text, because the API refuses marks on it.
fn mark_text(text: &str) -> Option<Box<RawValue>> {
    if text.trim().is_empty() {
        return None;
    }
    mark_last(&json!([{"type": "text", "text": text}]).to_string())
}

/// Marks the last object of an array, which isn't empty.
fn mark_last(array: &str) -> Option<Box<RawValue>> {
    let before = array.trim_end().strip_suffix(']')?.trim_end();
    let object = before.strip_suffix('}')?;
    RawValue::from_string(format!("{object}{MARKED_END}]")).ok()
}

/// Marks the end of a user message. Returns `None` for a message of the model, or one without content.
fn mark_message(message: &RawValue) -> Option<Box<RawValue>> {
    let object = ParsedObject::parse(message.get()).ok()??;
    if object.get_text("role")? != "user" {
        return None;
    }
    let content = object.get("content")?;
    let marked = match content.to_text() {
        Some(text) => mark_text(&text)?,
        None => mark_last(content.get())?,
    };
    RawValue::from_string(format!(r#"{{"role":"user","content":{marked}}}"#)).ok()
}

// The JSON of a request to a model's API.

/// The body of a request for the next response of a model.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(crate) struct ChatRequest<'a> {
    pub(crate) model: &'a str,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) max_completion_tokens: Option<u32>,
    pub(crate) system: Option<SystemPrompt<'a>>,
    pub(crate) messages: ChatMessages<'a>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_may_include_its_version_and_path() {
        for (endpoint, api, url) in [
            (
                "https://api.anthropic.com",
                Api::Anthropic,
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "https://h/proxy/",
                Api::Anthropic,
                "https://h/proxy/v1/messages",
            ),
            (
                "http://[::1]:8080/v1",
                Api::OpenAiChat,
                "http://[::1]:8080/v1/chat/completions",
            ),
            (
                "https://h/api/v4/",
                Api::OpenAiChat,
                "https://h/api/v4/chat/completions",
            ),
            (
                "https://h/openai/chat/completions?api-version=1",
                Api::OpenAiChat,
                "https://h/openai/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(endpoint_url(endpoint, api).unwrap().as_str(), url);
        }
        assert!(endpoint_url("localhost:8080", Api::Anthropic).is_none());
        assert!(endpoint_url("file:///v1", Api::Anthropic).is_none());
    }

    fn mark(message: &str) -> Option<String> {
        let message = RawValue::from_string(message.to_owned()).unwrap();
        mark_message(&message).map(|marked| marked.get().to_owned())
    }

    #[test]
    fn the_last_block_of_a_user_message_is_marked() {
        assert_eq!(
            mark(r#"{"role":"user","content":"a \"b\""}"#).unwrap(),
            r#"{"role":"user","content":[{"type":"text","text":"a \"b\"","cache_control":{"type":"ephemeral"}}]}"#
        );
        assert_eq!(
            mark(r#"{"role":"user","content":[{"type":"tool_result","content":1.0},{"a":{"b":12345678901234567890}} ] }"#).unwrap(),
            r#"{"role":"user","content":[{"type":"tool_result","content":1.0},{"a":{"b":12345678901234567890},"cache_control":{"type":"ephemeral"}}]}"#
        );
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        assert_eq!(mark(r#"{"role":"assistant","content":"a"}"#), None);
        assert_eq!(mark(r#"{"role":"user","content":" "}"#), None);
        assert_eq!(mark(r#"{"role":"user","content":[]}"#), None);
    }
}
