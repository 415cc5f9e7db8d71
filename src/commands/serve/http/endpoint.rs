//! What a request is, by its method, its path and its headers, and who may send it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    AUTHORIZATION, HOST, HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use subtle::ConstantTimeEq as _;
use url::{Host, Url};

use crate::commands::serve::http::post::{HttpReplyBody, PostHandler, empty_body, json_response};
use crate::commands::serve::http::sessions::unknown_session;
use crate::commands::serve::open_calls::OpenCalls;
use toolq_mcp::RpcError;
use toolq_mcp::http::{PostError, SESSION_ID_HEADER};
use toolq_mcp::server::ToolCatalog;

/// The supported methods. A GET would open a stream of requests to the client, and there are no such requests.
const METHODS: HeaderValue = HeaderValue::from_static("POST, DELETE, OPTIONS");

/// Everything that requests have in common.
pub(super) struct Endpoint {
    access: AccessPolicy,
    posts: PostHandler,
}

impl Endpoint {
    pub(super) fn new(
        access: AccessPolicy,
        catalog: Arc<ToolCatalog>,
        calls: Arc<OpenCalls>,
    ) -> Self {
        Self {
            access,
            posts: PostHandler::new(catalog, calls),
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
            Method::POST => match self.posts.answer(request, body, peer).await {
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
        match self.posts.sessions.remove(id) {
            Some(client) => {
                self.posts.calls.end_client(&client);
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
        json_response(status, error.to_json(&self.posts.calls.mask))
    }
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
