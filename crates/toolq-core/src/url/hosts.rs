//! Checks a URL that comes whole from an input against the allowed hosts, and parses the entries of that list. The
//! check looks at the parsed URL, and the request uses what was parsed, never the original text.

use std::net::IpAddr;

use url::{Host, Url};

use crate::types::HostPattern;
use crate::url::public_address::is_public;

/// Parses `text` as a URL, if `hosts` allows its host.
///
/// # Errors
/// Why the URL isn't allowed, as the continuation of "The URL …".
pub(crate) fn parse_allowed_url(text: &str, hosts: &[HostPattern]) -> Result<Url, String> {
    // URL parsers skip some of these and treat others as `/`. Attackers use them to make two parsers disagree.
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("must not contain spaces, control characters or `\\`".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("must be a URL: {error}"))?;
    check_url(&url, hosts)?;
    Ok(url)
}

/// Checks whether a parsed URL may be requested.
///
/// # Errors
/// See [`parse_allowed_url`].
pub(crate) fn check_url(url: &Url, hosts: &[HostPattern]) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or a password".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    if !hosts.iter().any(|pattern| pattern.matches(host)) {
        return Err(unlisted_host_message(hosts));
    }
    match ip_address(url.host()) {
        Some(address) if !is_public(address) => {
            Err("must not be at an address that isn't public".to_owned())
        }
        _ => Ok(()),
    }
}

fn unlisted_host_message(hosts: &[HostPattern]) -> String {
    if hosts.is_empty() {
        return "has a host, but this tool may not contact any".to_owned();
    }
    let known: Vec<String> = hosts.iter().map(HostPattern::to_string).collect();
    format!("must have one of these hosts: {}", known.join(", "))
}

fn ip_address<S>(host: Option<Host<S>>) -> Option<IpAddr> {
    match host? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Parses an entry of `hosts`: a host, or `*.` followed by a domain.
///
/// # Errors
/// Why the entry is invalid, and what to write instead.
pub(crate) fn parse_host_pattern(text: &str) -> Result<HostPattern, (String, &'static str)> {
    let pattern = parse_host_name_pattern(text)?;
    let is_public = match &pattern {
        HostPattern::Subdomains(name) => !is_loopback_name(name),
        HostPattern::Exact(name) if is_loopback_name(name) => false,
        HostPattern::Exact(name) => ip_address(Host::parse(name).ok()).is_none_or(is_public),
    };
    if is_public {
        return Ok(pattern);
    }
    Err((
        format!("`{text}` isn't public, so it would never be contacted"),
        "to reach a server of your own, put it into `url`: `http://127.0.0.1:8080/{path}`",
    ))
}

/// Parses a host, or `*.` followed by a domain, whether it is public or not.
///
/// # Errors
/// See [`parse_host_pattern`].
pub(crate) fn parse_host_name_pattern(text: &str) -> Result<HostPattern, (String, &'static str)> {
    let not_a_host = (
        format!("`{text}` isn't a host"),
        "write `api.example.com`, or `*.example.com` for all of its subdomains: no scheme, no port, no path",
    );
    let (name, is_wildcard) = match text.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (text, false),
    };
    if name.contains(['*', '%']) || name.ends_with('.') {
        return Err(not_a_host);
    }
    let Ok(host) = Host::parse(name) else {
        return Err(not_a_host);
    };
    match &host {
        Host::Domain(name) if is_wildcard => Ok(HostPattern::Subdomains(name.clone())),
        _ if is_wildcard => Err(not_a_host),
        _ => Ok(HostPattern::Exact(host.to_string())),
    }
}

/// Whether the name always refers to this machine (RFC 6761, section 6.3).
fn is_loopback_name(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}
