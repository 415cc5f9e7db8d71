//! Who may send requests: checks of `Host` and `Origin` keep out web pages, and a token keeps out every client that doesn't know it.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq as _;
use url::{Host, Url};

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

/// Why a request isn't answered.
#[derive(Debug)]
pub(crate) struct AccessError {
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
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), AccessError> {
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
