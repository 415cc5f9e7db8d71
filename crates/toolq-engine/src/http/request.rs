//! Builds the request of a call from its partially resolved templates. The input can't choose the server, except among
//! the allowed hosts.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request};
use url::Url;

use crate::http::error;
use crate::partial_values::{resolve_json, resolve_text};
use crate::scheduler::CallJob;
use toolq_core::os::Environment;
use toolq_core::types::{
    CallTrace, Effect, HttpBacking, HttpInvocation, HttpMethod, Outcome, PartialTemplate,
};
use toolq_core::url::{RequestUrlError, build_request_url};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Builds the request of a call.
///
/// # Errors
/// The outcome of the call, because nothing can be sent.
pub(crate) fn build_request(
    invocation: &HttpInvocation,
    backing: &HttpBacking,
    job: &CallJob,
    (key, trace): (&str, Option<&CallTrace>),
    environment: &Environment,
) -> Result<Request, Outcome> {
    let resolver = TemplateResolver(environment);
    let url = resolver.resolve_url(invocation, backing)?;
    let mut headers = resolver.resolve_headers(&invocation.headers, &url)?;
    if job.accepted.tool.effect != Effect::Read
        && let Ok(key) = HeaderValue::from_str(key)
    {
        headers.entry(IDEMPOTENCY_KEY).or_insert(key);
    }
    if let Some(trace) = trace {
        add_trace_headers(&mut headers, trace);
    }
    let mut request = Request::new(to_reqwest_method(backing.method), url);
    if let Some(body) = &invocation.body {
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(Body::from(resolve_json(body, environment)?));
    }
    *request.headers_mut() = headers;
    Ok(request)
}

/// Says which span the request belongs to, unless tools.yaml says something else.
fn add_trace_headers(headers: &mut HeaderMap, trace: &CallTrace) {
    if headers.contains_key(TRACEPARENT) {
        return;
    }
    let state = trace.tracestate.as_deref();
    let fields = [
        (TRACEPARENT, Some(&*trace.traceparent)),
        (TRACESTATE, state),
    ];
    for (name, value) in fields {
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
}

fn to_reqwest_method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Head => Method::HEAD,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    }
}

/// Resolves templates with the values of the environment.
struct TemplateResolver<'e>(&'e Environment);

impl TemplateResolver<'_> {
    /// Resolves the URL, and ensures that tools.yaml allows its server.
    fn resolve_url(
        &self,
        invocation: &HttpInvocation,
        backing: &HttpBacking,
    ) -> Result<Url, Outcome> {
        build_request_url(backing, invocation, &|name| self.0.get(name)).map_err(
            |error| match error {
                RequestUrlError::MissingVariable(name) => Outcome::MissingVariable(name),
                RequestUrlError::Malformed(_) | RequestUrlError::NotAllowed(_) => {
                    error::build_failure(String::new(), error.to_string())
                }
            },
        )
    }

    fn resolve_headers(
        &self,
        templates: &[(String, PartialTemplate)],
        url: &Url,
    ) -> Result<HeaderMap, Outcome> {
        let mut headers = HeaderMap::with_capacity(templates.len() + 2);
        for (name, template) in templates {
            let value = HeaderValue::from_str(&resolve_text(template, self.0)?);
            let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value) else {
                let problem = format!("the value of the header {name} contains invalid characters");
                return Err(header_failure(url, problem));
            };
            headers.append(name, value);
        }
        Ok(headers)
    }
}

fn header_failure(url: &Url, problem: String) -> Outcome {
    error::build_failure(url.origin().ascii_serialization(), problem)
}
