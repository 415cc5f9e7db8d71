//! Hosts, origins and tokens that are let in, and those that are kept out.

use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Request};

use super::*;

const LOCAL: &str = "192.168.1.5:8080";

fn policy() -> AccessPolicy {
    AccessPolicy {
        token: Some(BearerToken::new("s3cr3t-canary")),
        origins: vec![WebOrigin::parse("https://app.example.com").unwrap()],
    }
}

fn is_allowed(headers: &[(&str, &str)]) -> bool {
    let mut request = Request::builder().uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (request, ()) = request.body(()).unwrap().into_parts();
    let result = policy().check_source(&request, LOCAL.parse().unwrap());
    result.is_ok()
}

/// A web page may rebind its name to this machine, but still sends its own name.
#[test]
fn hosts_are_this_machine_or_declared() {
    for host in [
        "localhost",
        "LOCALHOST:80",
        "127.0.0.1:8080",
        "127.8.8.8",
        "[::1]:1",
        "192.168.1.5:8080",
        "192.168.1.5",
        "app.example.com",
        "app.example.com:8443",
    ] {
        assert!(is_allowed(&[("host", host)]), "{host}");
    }
    for host in [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.1.6",
        "0.0.0.0:8080",
        "evil.example@localhost",
        "localhost/evil",
        "localhost#evil",
        "localhost\\evil",
        "example.com",
        "[::2]",
        "localhost, evil.example",
    ] {
        assert!(!is_allowed(&[("host", host)]), "{host}");
    }
    assert!(!is_allowed(&[]));
}

#[test]
fn origins_are_this_machine_or_declared() {
    for origin in [
        "http://localhost:6274",
        "http://127.0.0.1",
        "http://192.168.1.5:8080",
        "https://app.example.com",
        "https://app.example.com:443",
    ] {
        assert!(
            is_allowed(&[("host", LOCAL), ("origin", origin)]),
            "{origin}"
        );
    }
    for origin in [
        "null",
        "",
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://app.example.com.evil.example",
        "http://evil.example",
        "file://localhost",
        "http://localhost/path",
    ] {
        assert!(
            !is_allowed(&[("host", LOCAL), ("origin", origin)]),
            "{origin}"
        );
    }
    let twice = [
        ("host", LOCAL),
        ("origin", "http://localhost"),
        ("origin", "http://evil.example"),
    ];
    assert!(!is_allowed(&twice));
    assert!(!is_allowed(&[("host", LOCAL), ("host", "evil.example")]));
}

#[test]
fn only_the_token_is_the_token() {
    let is_allowed = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        policy().check_token(&headers).is_ok()
    };
    for value in ["Bearer s3cr3t-canary", "bearer  s3cr3t-canary "] {
        assert!(is_allowed(&[value]), "{value}");
    }
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "s3cr3t-canary",
        "Basic s3cr3t-canary",
        "Bearer s3cr3t-canar",
        "Bearer S3cr3t-canary",
    ] {
        assert!(!is_allowed(&[value]), "{value}");
    }
    assert!(!is_allowed(&[]));
    assert!(!is_allowed(&[
        "Bearer s3cr3t-canary",
        "Bearer s3cr3t-canary"
    ]));
}
