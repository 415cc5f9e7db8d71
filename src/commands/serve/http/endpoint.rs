//! What a request is, by its method, its path and its headers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use redact::Mask;
use tokio::sync::Semaphore;
use toolq_mcp::RpcError;
use toolq_mcp::http::{PostError, SESSION_ID_HEADER};
use toolq_mcp::server::SharedCatalog;

use crate::commands::serve::http::PATH;
use crate::commands::serve::http::access::AccessPolicy;
use crate::commands::serve::http::reply::{HttpReplyBody, empty_body, full_body};
use crate::commands::serve::http::sessions::Sessions;
use crate::commands::serve::open_calls::OpenCalls;

/// The supported methods. A GET would open a stream of requests to the client, and there are no such requests.
pub(super) const METHODS: HeaderValue = HeaderValue::from_static("POST, DELETE, OPTIONS");

/// How much memory the bodies that are being read may take, in KiB.
const BODY_MEMORY_KIB: usize = 64 << 10;

/// Everything that requests have in common, before calls can begin.
pub(super) struct Endpoint {
    access: AccessPolicy,
    pub(super) catalog: SharedCatalog,
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
    pub(super) fn new(access: AccessPolicy, catalog: SharedCatalog, mask: Arc<Mask>) -> Self {
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
