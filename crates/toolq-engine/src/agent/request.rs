//! What an API is asked: where, by whom, and the conversation so far.

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue,
};
use reqwest::{Body, Method, Request};
use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use crate::agent::error::Broken;
use toolq_core::os::Environment;
use toolq_core::types::{
    AgentBacking, AgentFault, Api, Draft, Outcome, Part, Template, Transport, TransportPhase,
};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// The version of the Messages API that is spoken here.
const VERSION: &str = "2023-06-01";
/// The host whose newer models know `max_completion_tokens` only. Other servers of its API know the older word.
const OPENAI: &str = "api.openai.com";

/// The texts of an agent, with the environment's values put in.
pub(crate) struct Texts<'e>(pub(crate) &'e Environment);

impl Texts<'_> {
    /// # Errors
    /// How the call ends because a variable is missing.
    pub(crate) fn draft(&self, draft: &Draft) -> Result<String, Outcome> {
        let resolved = draft.resolve(&|name| self.0.get(name));
        resolved.map_err(Outcome::MissingVariable)
    }

    /// The same for a template that holds no value of the input.
    pub(crate) fn fixed(&self, template: &Template) -> Result<String, Outcome> {
        let pieces = template.parts.iter().filter_map(Part::as_piece);
        self.draft(&Draft(pieces.collect()))
    }

    fn optional(&self, template: Option<&Template>) -> Result<Option<String>, Outcome> {
        template.map(|template| self.fixed(template)).transpose()
    }
}

/// What stays the same in all requests of a conversation.
pub(crate) struct Address {
    api: Api,
    pub(crate) url: Url,
    headers: HeaderMap,
    system: Option<String>,
    max_tokens: u32,
    stream: bool,
}

impl Address {
    /// # Errors
    /// How the call ends because nothing can be sent.
    pub(crate) fn of(backing: &AgentBacking, texts: &Texts<'_>) -> Result<Self, Broken> {
        let endpoint = texts.fixed(&backing.endpoint)?;
        let url = endpoint_url(&endpoint, backing.api);
        let url = url.ok_or_else(|| AgentFault::NoEndpoint {
            declared: backing.endpoint.to_string(),
            value: endpoint,
        })?;
        let key = texts.optional(backing.api_key.as_ref())?;
        let headers = headers(backing.api, key.as_deref()).map_err(|_| {
            let why = "the API key may not stand in a header";
            unbuilt(&url, why)
        })?;
        Ok(Self {
            api: backing.api,
            url,
            headers,
            system: texts.optional(backing.system.as_ref())?,
            max_tokens: backing.max_tokens,
            stream: backing.stream,
        })
    }

    /// The body of a request for the next answer of `model`.
    pub(crate) fn body(
        &self,
        model: &str,
        messages: &[Box<RawValue>],
        tools: Option<&RawValue>,
    ) -> String {
        let told = self.system.as_deref();
        let of_openai = self.api == Api::OpenAiChat;
        let newer = of_openai && self.url.host_str() == Some(OPENAI);
        let body = Asked {
            model,
            max_tokens: (!newer).then_some(self.max_tokens),
            max_completion_tokens: newer.then_some(self.max_tokens),
            system: told.filter(|_| !of_openai),
            messages: Messages(told.filter(|_| of_openai), messages),
            tools,
            stream: self.stream.then_some(true),
            stream_options: (self.stream && of_openai).then_some(StreamOptions {
                include_usage: true,
            }),
        };
        // Texts and JSON: there is nothing in it that JSON has no form for.
        serde_json::to_string(&body).unwrap_or_default()
    }

    pub(crate) fn request(&self, body: String) -> Request {
        let mut request = Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(Body::from(body));
        request
    }

    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The conversation, behind what its model is told before, where that is a message.
struct Messages<'a>(Option<&'a str>, &'a [Box<RawValue>]);

#[derive(Serialize)]
#[serde(untagged)]
enum Message<'a> {
    System {
        role: &'static str,
        content: &'a str,
    },
    Said(&'a RawValue),
}

impl Serialize for Messages<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let told = self.0.map(|content| Message::System {
            role: "system",
            content,
        });
        to.collect_seq(
            told.into_iter()
                .chain(self.1.iter().map(|said| Message::Said(said))),
        )
    }
}

fn headers(api: Api, key: Option<&str>) -> Result<HeaderMap, InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if api == Api::Anthropic {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static(VERSION));
    }
    if let Some(key) = key {
        let (name, value) = match api {
            Api::Anthropic => (API_KEY, HeaderValue::from_str(key)?),
            Api::OpenAiChat => (
                AUTHORIZATION,
                HeaderValue::from_str(&format!("Bearer {key}"))?,
            ),
        };
        let mut value = value;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The address of an API: an endpoint whose path is the API's own is whole, one that ends in a version lacks only its
/// end, and any other lacks both.
/// None where it is no URL of http or https.
fn endpoint_url(endpoint: &str, api: Api) -> Option<Url> {
    let mut url = Url::parse(endpoint).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return None;
    }
    let own = match api {
        Api::Anthropic => "/messages",
        Api::OpenAiChat => "/chat/completions",
    };
    let path = url.path().trim_end_matches('/').to_owned();
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_version = last
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let whole = match path.as_str() {
        path if path.ends_with(own) => path.to_owned(),
        path if is_version => format!("{path}{own}"),
        path => format!("{path}/v1{own}"),
    };
    url.set_path(&whole);
    Some(url)
}

/// The task as the first message of a conversation.
pub(crate) fn user(text: &str) -> Box<RawValue> {
    #[derive(Serialize)]
    struct User<'a> {
        role: &'static str,
        content: &'a str,
    }
    let message = User {
        role: "user",
        content: text,
    };
    serde_json::value::to_raw_value(&message).unwrap_or_default()
}

fn unbuilt(url: &Url, why: &str) -> Outcome {
    Outcome::Transport(Transport {
        phase: TransportPhase::Build,
        origin: url.origin().ascii_serialization(),
        detail: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_may_have_its_version_and_its_end() {
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
}
