//! What a request is, by its method, its path and its headers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::commands::serve::http::PATH;
use crate::commands::serve::http::access::AccessPolicy;
use crate::commands::serve::http::post::{HttpReplyBody, empty_body, full_body};
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::ServedClient;
use redact::Mask;
use toolq_mcp::RpcError;
use toolq_mcp::http::{PostError, SESSION_ID_HEADER};
use toolq_mcp::server::ToolCatalog;

/// The supported methods. A GET would open a stream of requests to the client, and there are no such requests.
const METHODS: HeaderValue = HeaderValue::from_static("POST, DELETE, OPTIONS");

/// How much memory the bodies that are being read may take, in KiB.
const BODY_MEMORY_KIB: usize = 64 << 10;

/// Everything that requests have in common, before calls can begin.
pub(super) struct Endpoint {
    access: AccessPolicy,
    pub(super) catalog: Arc<ToolCatalog>,
    pub(super) mask: Arc<Mask>,
}

/// An endpoint whose calls can begin.
pub(super) struct OpenEndpoint {
    pub(super) settings: Endpoint,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) sessions: Sessions,
    pub(super) body_memory: Semaphore,
}

impl Endpoint {
    pub(super) fn new(access: AccessPolicy, catalog: Arc<ToolCatalog>, mask: Arc<Mask>) -> Self {
        Self {
            access,
            catalog,
            mask,
        }
    }

    pub(super) fn with_calls(self, calls: Arc<OpenCalls>) -> OpenEndpoint {
        OpenEndpoint {
            settings: self,
            calls,
            sessions: Sessions::default(),
            body_memory: Semaphore::new(BODY_MEMORY_KIB),
        }
    }
}

impl OpenEndpoint {
    /// Answers a request that came to the address `local`.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        local: SocketAddr,
        peer: IpAddr,
    ) -> Response<HttpReplyBody> {
        let (request, body) = request.into_parts();
        let origin = match self.settings.access.check_source(&request, local) {
            Ok(origin) => origin,
            Err(error) => return self.refuse(error.status, error.message),
        };
        let mut response = match self.settings.access.check_token(&request.headers) {
            // Browsers ask without the token.
            _ if request.method == Method::OPTIONS && origin.is_some() => {
                answer_preflight(&request.headers)
            }
            Ok(()) => self.answer_allowed(&request, body, peer).await,
            Err(error) => {
                let mut response = self.refuse(error.status, error.message);
                let scheme = HeaderValue::from_static("Bearer realm=\"toolq\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                response
            }
        };
        if let Some(origin) = origin {
            allow_origin(&mut response, origin);
        }
        response
    }

    async fn answer_allowed(
        &self,
        request: &Parts,
        body: Incoming,
        peer: IpAddr,
    ) -> Response<HttpReplyBody> {
        if request.uri.path() != PATH {
            let why = format!("there is nothing at this path; the server is at {PATH}");
            return self.refuse(StatusCode::NOT_FOUND, why);
        }
        match request.method {
            Method::POST => match self.answer_post(request, body, peer).await {
                Ok(response) => response,
                Err(error) => self.refuse_post(&error),
            },
            Method::DELETE if request.headers.contains_key(SESSION_ID_HEADER) => {
                self.end_session(request)
            }
            _ => {
                let why = "messages are sent with POST".to_owned();
                let mut response = self.refuse(StatusCode::METHOD_NOT_ALLOWED, why);
                response.headers_mut().insert(ALLOW, METHODS);
                response
            }
        }
    }

    /// Ends a session as its client asks, and the calls that it waits for.
    fn end_session(&self, request: &Parts) -> Response<HttpReplyBody> {
        let id = request.headers.get(SESSION_ID_HEADER);
        let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
        match self.sessions.remove(id) {
            Some(client) => {
                client.leave(&self.calls);
                let mut response = Response::new(empty_body());
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            None => self.refuse_post(&unknown_session()),
        }
    }

    fn refuse(&self, status: StatusCode, message: String) -> Response<HttpReplyBody> {
        let error = PostError::new(status.as_u16(), RpcError::INVALID_REQUEST, message);
        self.refuse_post(&error)
    }

    fn refuse_post(&self, error: &PostError) -> Response<HttpReplyBody> {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
        json_response(status, error.to_json(&self.settings.mask))
    }
}

/// The specification's answer to a session that has ended: the client begins a new one.
pub(super) fn unknown_session() -> PostError {
    let why = "there is no such session; it may have ended, so begin a new one with initialize";
    PostError::new(404, RpcError::INVALID_REQUEST, why)
}

pub(super) fn json_response(status: StatusCode, json: Vec<u8>) -> Response<HttpReplyBody> {
    let mut response = Response::new(full_body(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

// What browsers want to know before a web page of another origin may use the server.

/// How long a browser may keep the answer, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// The headers of responses that a page may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");

/// Answers the question of a browser whether a page of an allowed origin may send a request.
fn answer_preflight(headers: &HeaderMap) -> Response<HttpReplyBody> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // The origin is allowed, so it may send any header: arguments have headers with names of their own.
    if let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    response
}

/// Lets a page of an allowed origin read the response.
fn allow_origin(response: &mut Response<HttpReplyBody>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.insert(VARY, HeaderValue::from_static("origin"));
}

// The sessions of clients of the legacy era.

/// How many sessions there may be. Clients often leave without a word.
const MAX_SESSIONS: usize = 1024;
/// How long a session may be unused.
const MAX_IDLE_TIME: Duration = Duration::from_hours(1);

/// The sessions, by their ids.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

struct Session {
    client: Arc<ServedClient>,
    last_used: Instant,
}

impl Sessions {
    /// Adds a session that begins `now`, and ends those that have been idle for too long. If there are too many sessions,
    /// the one that has been idle longest ends, too. Returns whether there was room.
    pub(super) fn insert(
        &self,
        id: String,
        client: Arc<ServedClient>,
        now: Instant,
        calls: &OpenCalls,
    ) -> bool {
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| !session.is_over(now, calls));
        if sessions.len() >= MAX_SESSIONS {
            let unused = sessions
                .iter()
                .filter(|(_, session)| !calls.has_calls_of(&session.client));
            let oldest = unused.min_by_key(|(_, session)| session.last_used);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return false;
            };
            sessions.remove(&oldest);
        }
        let session = Session {
            client,
            last_used: now,
        };
        sessions.insert(id, session);
        true
    }

    /// Returns the client of a session, which is used `now`.
    pub(super) fn find(
        &self,
        id: &str,
        now: Instant,
        calls: &OpenCalls,
    ) -> Option<Arc<ServedClient>> {
        let mut sessions = self.0.lock();
        let session = sessions.get_mut(id)?;
        if session.is_over(now, calls) {
            sessions.remove(id);
            return None;
        }
        session.last_used = now;
        Some(Arc::clone(&session.client))
    }

    /// Ends a session, and returns its client.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<ServedClient>> {
        Some(self.0.lock().remove(id)?.client)
    }
}

impl Session {
    /// Returns whether the session has been idle for too long by `now`.
    fn is_over(&self, now: Instant, calls: &OpenCalls) -> bool {
        let idle = now.saturating_duration_since(self.last_used);
        idle >= MAX_IDLE_TIME && !calls.has_calls_of(&self.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::sync::mpsc;
    use toolq_mcp::Implementation;
    use toolq_mcp::server::{ServerSession, ToolCatalog};

    use crate::commands::serve::served_client::ClientIdentity;
    use toolq_core::check::CallChecker;
    use toolq_core::tools_file::parse_tools_file;

    fn client() -> Arc<ServedClient> {
        let server = Implementation {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let catalog = Arc::new(ToolCatalog::new(server, None, Vec::new()));
        let identity = ClientIdentity::Session("s".to_owned());
        Arc::new(ServedClient::new(identity, ServerSession::new(catalog)))
    }

    fn no_calls() -> OpenCalls {
        let tools = "version: 1\ntools: {a: {input_schema: {type: object}}}\n";
        let dir = std::path::Path::new("/");
        let tools = parse_tools_file(tools, dir, dir).tools.unwrap();
        let (turns, _) = mpsc::unbounded_channel();
        OpenCalls::new(CallChecker::new(Arc::new(tools)), None, turns)
    }

    #[test]
    fn an_unused_session_ends() {
        let (sessions, calls) = (Sessions::default(), no_calls());
        let begin = Instant::now();
        for id in ["a", "b"] {
            assert!(sessions.insert(id.to_owned(), client(), begin, &calls));
        }
        let middle = begin + MAX_IDLE_TIME / 2;
        assert!(sessions.find("a", middle, &calls).is_some());
        let late = begin + MAX_IDLE_TIME;
        assert!(sessions.find("a", late, &calls).is_some());
        assert!(sessions.find("b", late, &calls).is_none());
        let later = late + MAX_IDLE_TIME;
        assert!(sessions.insert("c".to_owned(), client(), later, &calls));
        assert!(sessions.remove("a").is_none());
    }

    /// Clients that leave without a word must not add up.
    #[test]
    fn one_session_too_many_ends_the_one_that_was_unused_for_longest() {
        let (sessions, calls) = (Sessions::default(), no_calls());
        let begin = Instant::now();
        let at = |number| begin + Duration::from_millis(number);
        for number in 0..MAX_SESSIONS as u64 {
            assert!(sessions.insert(number.to_string(), client(), at(number), &calls));
        }
        assert!(sessions.find("0", at(5000), &calls).is_some());
        assert!(sessions.insert("new".to_owned(), client(), at(5001), &calls));
        assert!(sessions.find("1", at(5002), &calls).is_none());
        for id in ["0", "2", "new"] {
            assert!(sessions.find(id, at(5002), &calls).is_some());
        }
    }
}
