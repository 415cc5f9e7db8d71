//! A call's drafts → the request that is sent. Nothing of an input decides where it goes.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request};
use url::Url;

use crate::http::error;
use crate::scheduler::Job;
use toolq_core::os::Environment;
use toolq_core::types::{
    Draft, Effect, HttpBacking, HttpInvocation, HttpMethod, JsonDraft, Outcome,
};
use toolq_core::url::{AddressFault, request_url};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Builds the request of a call.
///
/// # Errors
/// How the call ends because nothing can be sent.
pub(crate) fn build(
    invocation: &HttpInvocation,
    backing: &HttpBacking,
    job: &Job,
    key: &str,
    environment: &Environment,
) -> Result<Request, Outcome> {
    let values = Values(environment);
    let url = values.url(invocation, backing)?;
    let mut headers = values.headers(&invocation.headers, &url)?;
    if job.accepted.tool.effect != Effect::Read
        && let Ok(key) = HeaderValue::from_str(key)
    {
        headers.entry(IDEMPOTENCY_KEY).or_insert(key);
    }
    let mut request = Request::new(method(backing.method), url);
    if let Some(body) = &invocation.body {
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(Body::from(values.json(body)?));
    }
    *request.headers_mut() = headers;
    Ok(request)
}

fn method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Head => Method::HEAD,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    }
}

/// Drafts with the environment's values put in.
struct Values<'e>(&'e Environment);

impl Values<'_> {
    fn text(&self, draft: &Draft) -> Result<String, Outcome> {
        let resolved = draft.resolve(&|name| self.0.get(name));
        resolved.map_err(Outcome::MissingVariable)
    }

    /// The whole URL, which leads to a server that the file allows and to no other.
    fn url(&self, invocation: &HttpInvocation, backing: &HttpBacking) -> Result<Url, Outcome> {
        request_url(backing, invocation, &|name| self.0.get(name)).map_err(|fault| match fault {
            AddressFault::MissingVariable(name) => Outcome::MissingVariable(name),
            AddressFault::Malformed(_) | AddressFault::Refused(_) => {
                error::unbuilt(String::new(), fault.to_string())
            }
        })
    }

    fn headers(&self, drafts: &[(String, Draft)], url: &Url) -> Result<HeaderMap, Outcome> {
        let mut headers = HeaderMap::with_capacity(drafts.len() + 2);
        for (name, draft) in drafts {
            let value = HeaderValue::from_str(&self.text(draft)?);
            let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value) else {
                let problem = format!("the value of the header {name} may not stand in a header");
                return Err(unbuilt(url, problem));
            };
            headers.append(name, value);
        }
        Ok(headers)
    }

    fn json(&self, draft: &JsonDraft) -> Result<String, Outcome> {
        let mut text = String::new();
        self.write_json(draft, &mut text)?;
        Ok(text)
    }

    fn write_json(&self, draft: &JsonDraft, text: &mut String) -> Result<(), Outcome> {
        match draft {
            JsonDraft::Raw(raw) => text.push_str(raw.get()),
            JsonDraft::Text(draft) => push_string(&self.text(draft)?, text),
            JsonDraft::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    separate(index, text);
                    self.write_json(item, text)?;
                }
                text.push(']');
            }
            JsonDraft::Object(members) => {
                text.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    separate(index, text);
                    push_string(name, text);
                    text.push(':');
                    self.write_json(value, text)?;
                }
                text.push('}');
            }
        }
        Ok(())
    }
}

fn separate(index: usize, text: &mut String) {
    if index > 0 {
        text.push(',');
    }
}

fn push_string(value: &str, text: &mut String) {
    text.push_str(&serde_json::Value::from(value).to_string());
}

fn unbuilt(url: &Url, problem: String) -> Outcome {
    error::unbuilt(url.origin().ascii_serialization(), problem)
}
