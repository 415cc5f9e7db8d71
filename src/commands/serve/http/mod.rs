//! Clients over streamable HTTP: each message is a POST to one path, and its response has the answer.
//!
//! `connections` accepts sockets; `endpoint` decides by method, path and headers what a request is, with `access`;
//! `post` reads messages and answers them by a `reply`. Clients of the legacy era are in `sessions`.

mod connections;
mod endpoint;
mod post;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq as _;
use tokio::time::timeout;
use url::{Host, Url};

use crate::commands::serve::http::connections::Connections;
use crate::commands::serve::http::endpoint::Endpoint;
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::{ClientTransport, ServeArguments};
use crate::context::CommandContext;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_engine::RunControl;
use toolq_mcp::server::ToolCatalog;

/// The path of all requests.
const PATH: &str = "/mcp";

/// How long a client may keep the server waiting: for the headers of its next request, for a body, and for room to send.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long clients may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Serves clients over HTTP.
pub(crate) struct HttpService {
    socket: tokio::net::TcpListener,
    endpoint: Option<Endpoint>,
    connections: Connections,
}

impl HttpService {
    /// Begins to take requests, and says on stderr where. `mask` is for errors of the protocol.
    ///
    /// # Errors
    /// A tool can't be called over HTTP, or the socket can't be used.
    pub(crate) fn start(
        listener: HttpListener,
        catalog: Arc<ToolCatalog>,
        mask: Arc<Mask>,
    ) -> Result<Self, CommandError> {
        require_param_headers(&catalog)?;
        let address = listener.address;
        let socket =
            tokio::net::TcpListener::from_std(listener.socket).map_err(CommandError::usage)?;
        // Printed even with -q: with port 0, the user couldn't find the server otherwise.
        StderrWriter::write_text(&format!("serving on http://{address}{PATH}\n"));
        Ok(Self {
            socket,
            endpoint: Some(Endpoint::new(listener.access, catalog, mask)),
            connections: Connections::new(),
        })
    }
}

/// # Errors
/// A tool can't be called over HTTP.
fn require_param_headers(catalog: &ToolCatalog) -> Result<(), CommandError> {
    let headers = catalog.param_headers();
    headers.map(drop).map_err(|(tool, why)| {
        CommandError::usage(format!("{tool} can't be called over HTTP: {why}")).with_hint(
            "correct `x-mcp-header` in its input_schema, or leave the tool out with `--only`",
        )
    })
}

impl ClientTransport for HttpService {
    /// Handles requests until the run is stopped.
    async fn receive(
        &mut self,
        calls: &Arc<OpenCalls>,
        control: &RunControl,
    ) -> Result<(), CommandError> {
        let Some(endpoint) = self.endpoint.take() else {
            return Ok(());
        };
        let endpoint = Arc::new(endpoint.with_calls(Arc::clone(calls)));
        tokio::select! {
            biased;
            () = control.wait_for_external_halt() => {}
            () = self.connections.accept_all(&self.socket, &endpoint) => {}
        }
        Ok(())
    }

    fn report_end(&self) {}

    async fn finish(self) -> Result<(), CommandError> {
        drop(self.socket);
        // A client that doesn't read its answers keeps only itself waiting.
        let _ = timeout(OUTPUT_GRACE, self.connections.close()).await;
        Ok(())
    }
}

// Where to listen and whom to let in, as the command line says.

/// A socket that clients can already connect to, although their requests aren't answered yet.
pub(crate) struct HttpListener {
    pub(super) socket: TcpListener,
    /// With the port that the system chose, if it was to choose one.
    pub(super) address: SocketAddr,
    pub(super) access: AccessPolicy,
}

impl HttpListener {
    /// Begins to listen if the arguments say so.
    ///
    /// # Errors
    /// The arguments are unsafe or contradict each other, or the address can't be used.
    pub(crate) fn open(
        arguments: &ServeArguments,
        context: &CommandContext,
    ) -> Result<Option<Self>, CommandError> {
        let Some(address) = arguments.http else {
            return Ok(None);
        };
        let token = read_token(arguments, context)?;
        if token.is_none() && !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and no token keeps them out"
            );
            return Err(CommandError::usage(message).with_hint(
                "name the variable that has the token with `--token-env NAME`, or listen on 127.0.0.1",
            ));
        }
        let origins = arguments.origin.iter().map(|origin| {
            WebOrigin::parse(origin)
                .map_err(|why| CommandError::usage(format!("--origin {origin}: {why}")))
        });
        let access = AccessPolicy {
            token,
            origins: origins.collect::<Result<_, _>>()?,
        };
        let failed = |error| CommandError::usage(format!("can't listen on {address}: {error}"));
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Some(Self {
            address: socket.local_addr().map_err(failed)?,
            socket,
            access,
        }))
    }
}

/// Reads the token from the variable that holds it.
fn read_token(
    arguments: &ServeArguments,
    context: &CommandContext,
) -> Result<Option<BearerToken>, CommandError> {
    let Some(name) = &arguments.token_env else {
        return Ok(None);
    };
    let unusable = |why: &str| CommandError::usage(format!("--token-env {name}: {why}"));
    let value = context.environment.get(name).unwrap_or_default();
    let token = value.trim();
    if token.is_empty() {
        return Err(unusable("the variable is unset or empty"));
    }
    // A header has nothing else, and a shorter secret isn't masked.
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable("a token has only ASCII characters, and no spaces"));
    }
    if token.len() < Mask::MIN_SECRET_BYTES {
        let why = format!(
            "the token is too short: {} characters at least",
            Mask::MIN_SECRET_BYTES
        );
        return Err(unusable(&why).with_hint("`openssl rand -hex 32` makes one"));
    }
    Ok(Some(BearerToken::new(token)))
}

// Who may send requests: checks of `Host` and `Origin` keep out web pages, and a token keeps out every client that doesn't
// know it.

/// What a request must have to be answered.
#[derive(Debug)]
pub(crate) struct AccessPolicy {
    pub(super) token: Option<BearerToken>,
    /// Origins of web pages that may send requests, beside those on this machine.
    origins: Vec<WebOrigin>,
}

/// The secret that every request must have.
pub(crate) struct BearerToken(Vec<u8>);

/// Where a web page comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebOrigin {
    scheme: String,
    host: Host,
    port: Option<u16>,
}

/// Why a request isn't answered.
#[derive(Debug)]
struct AccessError {
    pub(super) status: StatusCode,
    pub(super) message: String,
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

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BearerToken")
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
    fn check_source(
        &self,
        request: &Parts,
        local: SocketAddr,
    ) -> Result<Option<HeaderValue>, AccessError> {
        let forbidden = |message: String| AccessError {
            status: StatusCode::FORBIDDEN,
            message,
        };
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
    fn check_token(&self, headers: &HeaderMap) -> Result<(), AccessError> {
        match &self.token {
            Some(token) if !token.is_in(headers) => Err(AccessError {
                status: StatusCode::UNAUTHORIZED,
                message: "the request needs the header `Authorization: Bearer TOKEN` with the right token".to_owned(),
            }),
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
fn parse_host(value: &str) -> Option<Host> {
    let is_plain = !value.contains(['/', '\\', '@', '?', '#']);
    let url = Url::parse(&format!("http://{value}/")).ok()?;
    url.host().filter(|_| is_plain).map(|host| host.to_owned())
}

/// Returns whether a host is a loopback name or the address by which the client came.
fn is_this_machine(host: &Host, local: IpAddr) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(ip) => ip.is_loopback() || IpAddr::V4(*ip) == local.to_canonical(),
        Host::Ipv6(ip) => ip.is_loopback() || IpAddr::V6(*ip) == local,
    }
}
