//! Runs HTTP backings: sends the request, and reads the response within limits on time and size.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request, Response};
use url::{Url, form_urlencoded};

use crate::attempt::{Attempt, AttemptResult, CallJob, canceled};
use crate::environment::{resolve_json, resolve_text};
use crate::http::clients::{HttpClients, send};
use crate::http::error::{self, HttpError, SendGuard};
use crate::http::{GzipBody, content_encoding, media_type, parse_retry_after, resolve_headers};
use crate::output::OutputCollector;
use crate::reach::Reach;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::json::JsonText;
use toolq_core::os::Environment;
use toolq_core::text::{format_bytes, format_duration};
use toolq_core::types::{
    Backing, CallEnding, CallOutput, CallTrace, Effect, FORM_MEDIA_TYPE, HttpBacking,
    HttpInvocation, HttpMethod, Outcome, PartialJson, Tool, TransportError, TransportPhase,
};
use toolq_core::url::{RequestUrlError, build_request_url};

/// Sends the requests of a tools.yaml.
#[derive(Debug)]
pub(crate) struct HttpRunner {
    clients: HttpClients,
    /// Whether a server has answered.
    has_answered: AtomicBool,
    settings: Arc<EngineSettings>,
}

impl HttpRunner {
    pub(crate) fn new(settings: Arc<EngineSettings>) -> Self {
        Self {
            clients: HttpClients::new(Arc::clone(&settings)),
            has_answered: AtomicBool::default(),
            settings,
        }
    }

    /// Runs one attempt.
    pub(crate) async fn run(&self, invocation: &HttpInvocation, attempt: Attempt) -> AttemptResult {
        let Attempt {
            job,
            idempotency_key: key,
            trace,
            timeout: limit,
            cancel,
            output_counter,
            control,
            ..
        } = attempt;
        let tool = &job.accepted.tool;
        let Some(Backing::Http(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let send_guard = SendGuard::default();
        let meta = (&*key, trace.as_ref());
        let request = build_request(invocation, backing, &job, meta, &self.settings.environment);
        let request = match request {
            Ok(request) => send_guard.guard_request(request, tool.effect, backing),
            Err(outcome) => return outcome.into(),
        };
        let origin = request.url().origin().ascii_serialization();
        let select = backing.select.clone();
        let body = OutputCollector::for_response(tool, select, &self.settings, output_counter);
        // Owned here rather than by the future that reads the response, so that a timeout doesn't lose what was read.
        let mut pending = PendingResponse { head: None, body };
        let read = tokio::select! {
            // An answer that is there counts, even if the call was canceled or its time is over.
            biased;
            read = self.exchange((request, &origin), backing, tool, &mut pending) => read,
            () = canceled(cancel, &control) => return pending.into_canceled(&send_guard, tool.effect),
            () = control.sleep(limit.duration) => Err(timeout_error(limit.configured, &send_guard, &origin)),
        };
        pending.into_attempt_result(read, tool.effect, &self.settings.mask)
    }

    /// Sends the request and reads the response into `pending`.
    ///
    /// # Errors
    /// Why there is no complete response.
    async fn exchange(
        &self,
        (request, origin): (Request, &str),
        backing: &HttpBacking,
        tool: &Tool,
        pending: &mut PendingResponse,
    ) -> Result<(), HttpError> {
        let attempt_timeout = tool.timeout.after;
        let client = |request: &Request, may_repeat: bool| {
            (self.clients).get(request, backing, (attempt_timeout, may_repeat))
        };
        // Only behind an answer, there may be a connection that is kept.
        let has_kept = self.has_answered.load(Ordering::Relaxed);
        let may_repeat = tool.effect != Effect::Write;
        let again = request.try_clone().filter(|_| may_repeat && has_kept);
        let sent = send(client(&request, may_repeat)?, request).await;
        let (sent, moved) = match (sent, again) {
            // The server may have closed it while the request was on its way.
            ((Err(error), _), Some(again)) if error.is_request() && !error.is_connect() => {
                send(client(&again, false)?, again).await
            }
            (sent, _) => sent,
        };
        let mut response =
            sent.map_err(|error| error::from_reqwest_error(origin, &error, moved))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let head = pending
            .head
            .insert(ResponseHead::from_response(&response, moved, backing));
        read_body(&mut response, head, &mut pending.body, origin).await
    }
}

/// Returns the error of a request that timed out. If it wasn't sent yet, it won't be anymore.
fn timeout_error(limit: Duration, send_guard: &SendGuard, origin: &str) -> HttpError {
    if send_guard.try_cancel() {
        let detail = format!("no connection within {}", format_duration(limit));
        error::transport_error(TransportPhase::Connect, origin, detail)
    } else {
        HttpError::TimedOut(limit)
    }
}

// Builds the request of a call from its partially resolved templates. The input can't choose the server, except among
// the allowed hosts.

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Builds the request of a call.
///
/// # Errors
/// The outcome of the call, because nothing can be sent.
fn build_request(
    invocation: &HttpInvocation,
    backing: &HttpBacking,
    job: &CallJob,
    (key, trace): (&str, Option<&CallTrace>),
    environment: &Environment,
) -> Result<Request, Outcome> {
    let url = resolve_url(invocation, backing, environment)?;
    let declared = invocation.headers.iter();
    let declared = declared.map(|(name, value)| (name, resolve_text(value, environment)));
    let origin = url.origin().ascii_serialization();
    let mut headers = resolve_headers(declared, &origin, false)?;
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
        *request.body_mut() = Some(Body::from(resolve_body(body, &headers, environment)?));
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

/// Resolves the URL, and ensures that tools.yaml allows its server.
fn resolve_url(
    invocation: &HttpInvocation,
    backing: &HttpBacking,
    environment: &Environment,
) -> Result<Url, Outcome> {
    let url = build_request_url(backing, invocation, &|name| environment.get(name));
    url.map_err(|error| match error {
        RequestUrlError::MissingVariable(name) => Outcome::MissingVariable(name),
        RequestUrlError::Malformed(_) | RequestUrlError::NotAllowed(_) => {
            error::build_failure(String::new(), error.to_string())
        }
    })
}

// Reads a response, and determines the outcome of the call.

/// A response that is still arriving.
#[derive(Debug)]
struct PendingResponse {
    /// `None` until it was received.
    head: Option<ResponseHead>,
    /// The body, as far as it was received.
    body: OutputCollector,
}

/// The status and the relevant headers of a response.
#[derive(Debug)]
struct ResponseHead {
    ending: CallEnding,
    is_success: bool,
    /// The content encoding of the body, if it has one that isn't decoded.
    encoding: Option<String>,
    /// The minimum wait before the next request that the server requested.
    retry_after: Option<Duration>,
}

impl PendingResponse {
    /// Returns the result of an attempt that was canceled.
    fn into_canceled(self, send_guard: &SendGuard, effect: Effect) -> AttemptResult {
        AttemptResult::Canceled {
            partial_output: self.body.into_output(String::new()),
            reach: Reach::of_request(effect, !send_guard.try_cancel()),
        }
    }

    /// Returns the result of an attempt after `read`. A failing status counts even if its body couldn't be read.
    fn into_attempt_result(
        self,
        read: Result<(), HttpError>,
        effect: Effect,
        mask: &Mask,
    ) -> AttemptResult {
        let retry_after = self.head.as_ref().and_then(|head| head.retry_after);
        let outcome = match (self.head, read) {
            (Some(head), read) if read.is_ok() || !head.is_success => {
                head.outcome_with_body(self.body)
            }
            (Some(head), Err(HttpError::EncodedBody(problem))) => Outcome::BadOutput {
                problem,
                output: CallOutput::default(),
                ending: head.ending,
            },
            (_, Err(HttpError::Unsent(outcome))) => outcome,
            (_, Err(HttpError::Transport(error))) => {
                let error = TransportError {
                    detail: mask.apply(&error.detail).into_owned(),
                    ..error
                };
                Reach::outcome_of_loss(effect, error, || self.body.into_output(String::new()))
            }
            (_, Err(HttpError::TimedOut(limit))) => {
                Reach::outcome_of_timeout(effect, limit, self.body.into_output(String::new()))
            }
            (_, Ok(()) | Err(HttpError::EncodedBody(_))) => {
                Outcome::InternalError("a response body was read before its head".to_owned())
            }
        };
        AttemptResult::Finished {
            outcome,
            retry_after,
        }
    }
}

impl ResponseHead {
    fn from_response(response: &Response, moved: bool, backing: &HttpBacking) -> Self {
        let status = response.status().as_u16();
        let is_success = backing
            .success_status
            .iter()
            .any(|range| range.contains(&status));
        Self {
            ending: if moved {
                CallEnding::RedirectedStatus(status)
            } else {
                CallEnding::HttpStatus(status)
            },
            is_success,
            encoding: content_encoding(response.headers()),
            retry_after: parse_retry_after(response.headers(), SystemTime::now()),
        }
    }

    /// Returns the outcome of the call for this head and body.
    fn outcome_with_body(&self, body: OutputCollector) -> Outcome {
        if self.is_success {
            return body.into_outcome(self.ending, String::new);
        }
        Outcome::Failed {
            output: body.into_output(String::new()),
            ending: self.ending,
        }
    }
}

/// How much of a body is decoded at once.
const MAX_PIECE_BYTES: usize = 4 << 10;

/// Reads a body piece by piece, up to the number of bytes that `output` can use.
///
/// # Errors
/// Why the body wasn't read to its end. The limit is for what a compressed one expands to, piece by piece.
async fn read_body(
    response: &mut Response,
    head: &ResponseHead,
    output: &mut OutputCollector,
    origin: &str,
) -> Result<(), HttpError> {
    let max_bytes = output.max_useful_bytes();
    let too_large = || {
        let detail = format!("the body has more than {}", format_bytes(max_bytes));
        error::transport_error(TransportPhase::TooLarge, origin, detail)
    };
    let declared_length = response.content_length();
    if head.encoding.is_none() && declared_length.is_some_and(|length| length > max_bytes) {
        return Err(too_large());
    }
    let body_error =
        |error| error::transport_error(TransportPhase::Body, origin, error::root_cause(&error));
    let mut body = match head.encoding.as_deref() {
        None => ArrivingBody::Plain,
        Some(encoding) if is_gzip(encoding) => ArrivingBody::Gzip(Box::new(GzipBody::new())),
        Some(_) => ArrivingBody::Unreadable,
    };
    let mut total = 0;
    let mut push = |bytes: io::Result<Cow<'_, [u8]>>| {
        let bytes = bytes.map_err(|error| {
            HttpError::EncodedBody(format!("its body is called gzip, and isn't: {error}"))
        })?;
        total += bytes.len() as u64;
        if total > max_bytes {
            return Err(too_large());
        }
        output.push(&bytes);
        Ok(())
    };
    while let Some(chunk) = response.chunk().await.map_err(body_error)? {
        for piece in chunk.chunks(MAX_PIECE_BYTES) {
            match &mut body {
                ArrivingBody::Plain => push(Ok(piece.into()))?,
                ArrivingBody::Gzip(gzip) => push(gzip.decode(piece).map(Cow::Owned))?,
                ArrivingBody::Unreadable => {
                    let encoding = head.encoding.clone().unwrap_or_default();
                    return Err(HttpError::EncodedBody(format!(
                        "its body is encoded ({encoding}), and of encodings, only gzip is decoded"
                    )));
                }
            }
        }
    }
    if let ArrivingBody::Gzip(gzip) = &mut body {
        let rest = gzip.finish().map_err(|error| {
            let detail = format!("the body isn't whole gzip: {error}");
            error::transport_error(TransportPhase::Body, origin, detail)
        })?;
        push(Ok(rest.into()))?;
    }
    Ok(())
}

/// Returns whether this is the name of gzip (RFC 9110, section 8.4.1.3).
fn is_gzip(encoding: &str) -> bool {
    ["gzip", "x-gzip"]
        .iter()
        .any(|name| encoding.eq_ignore_ascii_case(name))
}

/// How a body is encoded.
enum ArrivingBody {
    Plain,
    Gzip(Box<GzipBody>),
    /// In a way that toolq doesn't know.
    Unreadable,
}

// Writes the body of a request as its content type wants it: as JSON, as a form, or as the text that it is.

/// Returns the body. Where the content type isn't one of JSON, a string is sent without its quotes; where it is that of
/// forms, an object is sent as one.
///
/// # Errors
/// The outcome of the call, because a variable isn't set.
fn resolve_body(
    body: &PartialJson,
    headers: &HeaderMap,
    environment: &Environment,
) -> Result<String, Outcome> {
    let json = resolve_json(body, environment)?;
    let media_type = media_type(headers).unwrap_or_default();
    let is_json =
        matches!(&*media_type, "application/json" | "text/json") || media_type.ends_with("+json");
    let value = JsonText::new(&json);
    Ok(match (value.to_text(), value.object()) {
        (Some(text), _) if !is_json => text.into_owned(),
        (_, Some(object)) if media_type == FORM_MEDIA_TYPE => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            for (name, value) in object.members() {
                if !value.is_null() {
                    let text = value.to_text();
                    form.append_pair(name, &text.unwrap_or_else(|| value.get().into()));
                }
            }
            form.finish()
        }
        _ => json,
    })
}
