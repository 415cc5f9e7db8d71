//! URLs that come whole from an input: which hosts they may name, and how such a list is written. Judged is what a URL
//! parser reads, and what it reads is what is asked; the text itself is not looked at again.

use std::net::IpAddr;

use url::{Host, Url};

use crate::types::HostPattern;
use crate::url::public_address::is_public;

/// The URL in `text`, if `hosts` has its host.
///
/// # Errors
/// Why it may not be asked, as a continuation of "The URL …".
pub(crate) fn admitted(text: &str, hosts: &[HostPattern]) -> Result<Url, String> {
    // Parsers skip some of these and take others for a `/`; whoever writes them hopes that two parsers disagree.
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("must not hold spaces, control characters or `\\`".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("must be a URL: {error}"))?;
    check(&url, hosts)?;
    Ok(url)
}

/// Whether a parsed URL may be asked.
///
/// # Errors
/// As [`admitted`].
pub(crate) fn check(url: &Url, hosts: &[HostPattern]) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not name a user or a password".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    if !hosts.iter().any(|pattern| pattern.matches(host)) {
        return Err(not_listed(hosts));
    }
    match address(url.host()) {
        Some(address) if !is_public(address) => {
            Err("must not name an address that isn't public".to_owned())
        }
        _ => Ok(()),
    }
}

fn not_listed(hosts: &[HostPattern]) -> String {
    if hosts.is_empty() {
        return "names a host, and this tool may ask none".to_owned();
    }
    let known: Vec<String> = hosts.iter().map(HostPattern::to_string).collect();
    format!("must have one of these hosts: {}", known.join(", "))
}

fn address<S>(host: Option<Host<S>>) -> Option<IpAddr> {
    match host? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// An entry of `hosts`: a host, or `*.` and what it ends in.
///
/// # Errors
/// Why it is none, and what to write instead.
pub(crate) fn pattern(text: &str) -> Result<HostPattern, (String, &'static str)> {
    let no_host = (
        format!("`{text}` is no host"),
        "write `api.example.com`, or `*.example.com` for every host below it: no scheme, no port, no path",
    );
    let (name, below) = match text.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (text, false),
    };
    if name.contains(['*', '%']) || name.ends_with('.') {
        return Err(no_host);
    }
    let Ok(host) = Host::parse(name) else {
        return Err(no_host);
    };
    let never = (
        format!("`{text}` is not public, so it would never be asked"),
        "a tool for a server of your own has it in its `url`: `http://127.0.0.1:8080/{path}`",
    );
    match &host {
        Host::Domain(name) if is_local(name) => Err(never),
        Host::Domain(name) if below => Ok(HostPattern::Below(name.clone())),
        _ if below => Err(no_host),
        _ if address(Some(host.clone())).is_some_and(|address| !is_public(address)) => Err(never),
        _ => Ok(HostPattern::Exact(host.to_string())),
    }
}

/// Names that always mean this machine (RFC 6761, section 6.3).
fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}
