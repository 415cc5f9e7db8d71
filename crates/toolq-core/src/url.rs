//! Where a request may go: host lists, public addresses, and the final URL of a request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::form_urlencoded::byte_serialize;
use url::{Host, Url};

use crate::types::{HostPattern, HttpBacking, HttpInvocation, PartialTemplate};

// Builds the URL of a request from a filled template and the environment. Whatever the values are, the URL keeps the
// scheme, user, host, and port that the tool declares, or, if the input supplies the whole URL, has one of the allowed
// hosts.

/// Why a request has no URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestUrlError {
    /// An environment variable is unset or empty, and has no default.
    #[error("the environment variable {0} is unset or empty")]
    MissingVariable(String),
    /// The text isn't the URL of a web server. The message never contains a value.
    #[error("{0}")]
    Malformed(&'static str),
    /// The URL from the input isn't allowed.
    #[error("the URL {0}")]
    NotAllowed(String),
}

/// Builds the URL of one request, including the encoded query pairs. `env` looks up an environment variable.
///
/// # Errors
/// A variable is missing, or the URL is malformed or not one that the tool declares.
pub fn build_request_url(
    backing: &HttpBacking,
    request: &HttpInvocation,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Url, RequestUrlError> {
    let mut url = parse_filled_url(&request.url, env)?;
    match &backing.allowed_hosts {
        Some(hosts) => check_url(&url, hosts).map_err(RequestUrlError::NotAllowed)?,
        None if has_same_server(&url, &parse_filled_url(&backing.url.before_values(), env)?) => {}
        None => {
            return Err(RequestUrlError::Malformed(
                "a value would change the server in the URL",
            ));
        }
    }
    for (name, template) in &request.query {
        let value = template
            .resolve(env)
            .map_err(RequestUrlError::MissingVariable)?;
        let pair = format!("{}={}", encode_query_text(name), encode_query_text(&value));
        let query = match url.query() {
            None | Some("") => pair,
            Some(declared) => format!("{declared}&{pair}"),
        };
        url.set_query(Some(&query));
    }
    url.set_fragment(None);
    Ok(url)
}

fn parse_filled_url(
    template: &PartialTemplate,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Url, RequestUrlError> {
    let text = template
        .resolve(env)
        .map_err(RequestUrlError::MissingVariable)?;
    let url = Url::parse(&text).map_err(|_| RequestUrlError::Malformed("the URL is malformed"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(RequestUrlError::Malformed("the URL must use http or https")),
    }
}

fn has_same_server(one: &Url, other: &Url) -> bool {
    let server = |url: &Url| {
        let user = (url.username().to_owned(), url.password().map(str::to_owned));
        (
            url.scheme().to_owned(),
            user,
            url.host().map(|host| host.to_owned()),
            url.port(),
        )
    };
    server(one) == server(other)
}

// Checks a URL that comes whole from an input against the allowed hosts, and parses the entries of that list. The
// check looks at the parsed URL, and the request uses what was parsed, never the original text.

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
fn check_url(url: &Url, hosts: &[HostPattern]) -> Result<(), String> {
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
fn parse_host_name_pattern(text: &str) -> Result<HostPattern, (String, &'static str)> {
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

// Decides which addresses are public, that is, globally reachable. Only addresses known to be so count as public. That
// excludes the machine itself, private and shared networks, link-local addresses (where clouds serve credentials),
// multicast, documentation, and every form of IPv6 that embeds an IPv4 address.

/// IPv4 blocks that aren't globally reachable (IANA special-purpose address registry), the 6to4 relays, multicast, and
/// reserved addresses.
const SPECIAL_PURPOSE_V4_BLOCKS: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// All IPv6 addresses that are allocated for global use. IPv4-mapped and IPv4-compatible addresses, NAT64, loopback,
/// link-local, unique local, and multicast are outside of this block.
const GLOBAL_UNICAST_V6_BLOCK: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Blocks within it that lead elsewhere: IETF protocol assignments (including Teredo), documentation, and 6to4.
const SPECIAL_PURPOSE_V6_BLOCKS: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether the address is globally reachable, that is, the same machine for everyone on the internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_PURPOSE_V4_BLOCKS
            .iter()
            .any(|block| is_in_v4_block(address, *block)),
        IpAddr::V6(address) => {
            is_in_v6_block(address, &GLOBAL_UNICAST_V6_BLOCK)
                && !SPECIAL_PURPOSE_V6_BLOCKS
                    .iter()
                    .any(|block| is_in_v6_block(address, block))
        }
    }
}

fn is_in_v4_block(address: Ipv4Addr, (block, prefix_len): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= prefix_len
}

fn is_in_v6_block(address: Ipv6Addr, (block, prefix_len): &(Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= *prefix_len
}

// Encodes names and values of a query.

/// Percent-encodes a name or a value. A space becomes `%20`, as in a path: every server reads it, and not every one reads
/// `+` as a space.
pub(crate) fn encode_query_text(text: &str) -> String {
    let parts = byte_serialize(text.as_bytes());
    parts
        .map(|part| if part == "+" { "%20" } else { part })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the edges of every block.
    #[test]
    fn special_purpose_addresses_are_not_public() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(address), "{address}");
        }
        for address in [
            "1.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700:4700::1111",
            "2a00::1",
            "3ffe::1",
        ] {
            assert!(public(address), "{address}");
        }
    }
}

#[cfg(test)]
mod request_url_tests {
    use super::*;

    #[test]
    fn a_space_is_percent_encoded_and_a_plus_stays_a_plus() {
        assert_eq!(encode_query_text("a b+c&d=ü"), "a%20b%2Bc%26d%3D%C3%BC");
        assert_eq!(encode_query_text("plain-text_1.0"), "plain-text_1.0");
    }
}
