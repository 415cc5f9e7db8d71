//! What a request is, by its method, its path and its headers, and who may send it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;
use url::{Host, Url};

use crate::commands::serve::http::post::{HttpReplyBody, empty_body, full_body};
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::ServedClient;
use toolq_mcp::RpcError;
use toolq_mcp::http::{PostError, SESSION_ID_HEADER};
use toolq_mcp::server::ToolCatalog;

/// The supported methods. A GET would open a stream of requests to the client, and there are no such requests.
const METHODS: HeaderValue = HeaderValue::from_static("POST, DELETE, OPTIONS");

/// How much memory the bodies that are being read may take, in KiB.
const BODY_MEMORY_KIB: usize = 64 << 10;

/// Everything that requests have in common.
pub(super) struct Endpoint {
    access: AccessPolicy,
    pub(super) catalog: Arc<ToolCatalog>,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) sessions: Sessions,
    pub(super) body_memory: Semaphore,
}

impl Endpoint {
    pub(super) fn new(
        access: AccessPolicy,
        catalog: Arc<ToolCatalog>,
        calls: Arc<OpenCalls>,
    ) -> Self {
        Self {
            access,
            catalog,
            calls,
            sessions: Sessions::default(),
            body_memory: Semaphore::new(BODY_MEMORY_KIB),
        }
    }

    /// Answers a request that came to the address `local`.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        local: SocketAddr,
        peer: IpAddr,
    ) -> Response<HttpReplyBody> {
        let (request, body) = request.into_parts();
        let origin = match self.access.check_source(&request, local) {
            Ok(origin) => origin,
            Err(error) => return self.refuse_post(&error),
        };
        let mut response = match self.access.check_token(&request.headers) {
            // Browsers ask without the token.
            _ if request.method == Method::OPTIONS && origin.is_some() => {
                answer_preflight(&request.headers)
            }
            Ok(()) => self.answer_allowed(&request, body, peer).await,
            Err(error) => {
                let mut response = self.refuse_post(&error);
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
            return self.refuse(404, why);
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
                let mut response = self.refuse(405, "messages are sent with POST");
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

    fn refuse(&self, status: u16, message: impl Into<String>) -> Response<HttpReplyBody> {
        self.refuse_post(&PostError::new(status, RpcError::INVALID_REQUEST, message))
    }

    fn refuse_post(&self, error: &PostError) -> Response<HttpReplyBody> {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
        json_response(status, error.to_json(&self.calls.mask))
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

// Who may send requests: checks of `Host` and `Origin` keep out web pages, and a token keeps out every client that
// doesn't know it.

/// What a request must have to be answered.
#[derive(Debug)]
pub(crate) struct AccessPolicy {
    pub(super) token: Option<BearerToken>,
    /// Origins of web pages that may send requests, beside those on this machine.
    pub(super) origins: Vec<WebOrigin>,
}

/// The secret that every request must have.
#[derive(derive_more::Debug)]
#[debug("BearerToken")]
pub(crate) struct BearerToken(Vec<u8>);

/// Where a web page comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebOrigin {
    scheme: String,
    host: Host,
    port: Option<u16>,
}

impl BearerToken {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.as_bytes().to_vec())
    }

    /// Returns whether a request has the token. It takes the same time for every wrong token of the same length.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let (scheme, token) = value.as_bytes().split_at(value.len().min(b"Bearer ".len()));
        scheme.eq_ignore_ascii_case(b"Bearer ") && token.trim_ascii().ct_eq(&self.0).into()
    }
}

impl WebOrigin {
    /// Reads an origin, such as `https://example.com:8443`.
    ///
    /// # Errors
    /// Why it isn't one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let form =
            "an origin is a scheme, a host and maybe a port, such as https://example.com:8443";
        let url = Url::parse(text).map_err(|error| format!("{error}; {form}"))?;
        let is_bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match url.host() {
            Some(host) if is_bare && matches!(url.scheme(), "http" | "https") => Ok(Self {
                scheme: url.scheme().to_owned(),
                host: host.to_owned(),
                port: url.port_or_known_default(),
            }),
            _ => Err(form.to_owned()),
        }
    }
}

impl AccessPolicy {
    /// Checks who sends a request to the address `local`, and returns the origin of the web page, if it is one.
    ///
    /// # Errors
    /// The host or the origin isn't allowed.
    pub(super) fn check_source(
        &self,
        request: &Parts,
        local: SocketAddr,
    ) -> Result<Option<HeaderValue>, PostError> {
        let forbidden = |message: String| PostError::new(403, RpcError::INVALID_REQUEST, message);
        let in_headers = request.headers.get_all(HOST).iter();
        let in_headers =
            in_headers.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        let in_uri = request.uri.authority().map(ToString::to_string);
        let mut hosts = in_headers.chain(in_uri).peekable();
        if hosts.peek().is_none() {
            return Err(forbidden("the request has no Host header".to_owned()));
        }
        if let Some(host) = hosts.find(|host| !self.allows_host(host, local.ip())) {
            let message = format!(
                "the host {host:?} isn't a name of this server; `--origin` of toolq serve allows more"
            );
            return Err(forbidden(message));
        }
        let Some(origin) = request.headers.get(ORIGIN) else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(origin.as_bytes());
        if request.headers.get_all(ORIGIN).iter().count() == 1
            && self.allows_origin(&text, local.ip())
        {
            return Ok(Some(origin.clone()));
        }
        let message =
            format!("the origin {text:?} isn't allowed; `--origin` of toolq serve allows more");
        Err(forbidden(message))
    }

    /// Checks the token.
    ///
    /// # Errors
    /// There has to be one, and it isn't there, or wrong.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), PostError> {
        match &self.token {
            Some(token) if !token.is_in(headers) => {
                let why = "the request needs the header `Authorization: Bearer TOKEN` with the right token";
                Err(PostError::new(401, RpcError::INVALID_REQUEST, why))
            }
            _ => Ok(()),
        }
    }

    /// A page that rebinds its name to this machine sends that name. Ports don't matter: they may be forwarded.
    fn allows_host(&self, value: &str, local: IpAddr) -> bool {
        let Some(host) = parse_host(value) else {
            return false;
        };
        is_this_machine(&host, local) || self.origins.iter().any(|origin| origin.host == host)
    }

    fn allows_origin(&self, value: &str, local: IpAddr) -> bool {
        let Ok(origin) = WebOrigin::parse(value) else {
            return false;
        };
        is_this_machine(&origin.host, local) || self.origins.contains(&origin)
    }
}

/// Reads the value of a `Host` header.
pub(crate) fn parse_host(value: &str) -> Option<Host> {
    let is_plain = !value.contains(['/', '\\', '@', '?', '#']);
    let url = Url::parse(&format!("http://{value}/")).ok()?;
    url.host().filter(|_| is_plain).map(|host| host.to_owned())
}

/// Returns whether a host is a loopback name or the address by which the client came.
pub(crate) fn is_this_machine(host: &Host, local: IpAddr) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(ip) => ip.is_loopback() || IpAddr::V4(*ip) == local.to_canonical(),
        Host::Ipv6(ip) => ip.is_loopback() || IpAddr::V6(*ip) == local,
    }
}

/// The path of all requests.
pub(crate) const PATH: &str = "/mcp";

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
        OpenCalls::new(
            CallChecker::new(Arc::new(tools)),
            Arc::default(),
            None,
            turns,
        )
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
