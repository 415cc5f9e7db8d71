//! Requests are sent exactly as declared.

use serde_json::value::RawValue;
use toolq_core::types::{Effect, HttpMethod, PartialJson, Template, TransportPhase};

use crate::http::faulty_server::{FaultyServer, http_response};
use crate::http::transport_phase;
use crate::support::CliSandbox;
use crate::support::engine_turn::{http_call, text_template};

#[test]
fn a_request_is_sent_as_declared() {
    let server = FaultyServer::responding_with(&http_response("200 OK", "fine\n"));
    let call = server
        .post_call()
        .tool(|tool| tool.effect = Effect::Write)
        .http_invocation(|request| {
            request.query = vec![("q".to_owned(), text_template("a&b=c d"))];
            request.headers = vec![("x-one".to_owned(), text_template("two"))];
        });
    assert_eq!(call.run().text(), "fine\n");
    let request = &server.requests()[0];
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /?q=a%26b%3Dc%20d HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nx-one: two\r\n")
            && head.contains("\r\ncontent-type: application/json\r\n")
    );
    assert!(head.contains("\r\nidempotency-key: "), "{head}");
    assert_eq!(body, r#"{"n":1.00}"#);
    server.get_call("/").run();
    assert!(!server.requests()[1].contains("idempotency-key"));
}

/// Values become JSON strings of the body; they are never spliced into its text.
#[test]
fn values_are_placed_in_the_json_tree_of_a_body() {
    let server = FaultyServer::responding_with(&http_response("200 OK", ""));
    let hostile = PartialJson::Text(text_template("\"},\"admin\":true,\u{1}"));
    let body = PartialJson::Object(vec![("a\"".to_owned(), PartialJson::Array(vec![hostile]))]);
    server
        .post_call()
        .http_invocation(|request| request.body = Some(body))
        .run();
    assert!(server.requests()[0].ends_with(r#"{"a\"":["\"},\"admin\":true,\u0001"]}"#));
}

/// Only JSON has quotes around a text. A form is an object, whose values can't add fields.
#[test]
fn a_body_is_written_as_its_content_type_says() {
    const FORM: &str = "application/x-www-form-urlencoded";
    let raw = |json: &str| PartialJson::Raw(RawValue::from_string(json.to_owned()).unwrap().into());
    let text = || PartialJson::Text(text_template("a=1&b=\"2\""));
    let fields = || {
        let fields = [
            ("name", PartialJson::Text(text_template("a&b=c d"))),
            ("é", raw("1.00")),
            ("list", raw("[1,\"x\"]")),
            ("none", raw("null")),
        ];
        PartialJson::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
    };
    for (content_type, body, sent) in [
        (None, text(), r#""a=1&b=\"2\"""#),
        (Some("application/json"), text(), r#""a=1&b=\"2\"""#),
        (
            Some("application/ld+json; charset=utf-8"),
            raw(r#""x""#),
            r#""x""#,
        ),
        (Some(FORM), text(), r#"a=1&b="2""#),
        (Some("Text/Plain; charset=utf-8"), raw(r#""x\ny""#), "x\ny"),
        (Some("application/xml"), raw(r#""<a/>""#), "<a/>"),
        (Some("text/plain"), raw(r#"{"a":1.0}"#), r#"{"a":1.0}"#),
        (
            Some(FORM),
            fields(),
            "name=a%26b%3Dc+d&%C3%A9=1.00&list=%5B1%2C%22x%22%5D",
        ),
        (
            Some("application/x-www-form-urlencoded;charset=UTF-8"),
            raw(r#"{"a":"+"}"#),
            "a=%2B",
        ),
    ] {
        let server = FaultyServer::responding_with(&http_response("200 OK", ""));
        let call = server.post_call().http_invocation(|request| {
            let header = content_type.map(|name| ("content-type".to_owned(), text_template(name)));
            request.headers = header.into_iter().collect();
            request.body = Some(body);
        });
        call.run();
        let request = &server.requests()[0];
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, sent, "{content_type:?}");
    }
}

/// Not even together with a variable of the environment: the origin is the declared one.
#[test]
fn values_cannot_change_the_server_or_add_headers() {
    let server = FaultyServer::responding_with(&http_response("200 OK", ""));
    let header_injection = server.get_call("/").http_invocation(|request| {
        request.headers = vec![("x".to_owned(), text_template("a\r\nx-admin: true"))];
    });
    assert_eq!(
        transport_phase(header_injection.run().outcome()),
        TransportPhase::Build
    );
    let declared = Template::from_text(server.url.clone());
    for url in [
        server.url.replace("http://", "http://user@"),
        server.url.clone() + "0",
        "http://127.0.0.2/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let call =
            http_call(HttpMethod::Get, &url).http_backing(|backing| backing.url = declared.clone());
        assert_eq!(
            transport_phase(call.run().outcome()),
            TransportPhase::Build,
            "{url}"
        );
    }
    assert_eq!(server.requests().len(), 0);
}

/// Proxy variables of the environment are ignored in every spelling; a declared proxy is used.
#[test]
fn only_a_declared_proxy_is_used() {
    let proxy = FaultyServer::responding_with(&http_response("200 OK", "proxy"));
    let server = FaultyServer::responding_with(&http_response("200 OK", "server"));
    let file = format!(
        "tools:
  ask:
    input_schema: {{type: object}}
    effect: read
    http: {{url: \"{0}/\"}}
  declared:
    input_schema: {{type: object}}
    effect: read
    http: {{url: \"{0}/\", proxy: \"${{MY_PROXY}}\"}}
",
        server.url
    );
    let spellings = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "MY_PROXY",
        "REQUEST_METHOD",
    ];
    let toolq = spellings
        .iter()
        .fold(CliSandbox::new().tools(&file), |toolq, name| {
            toolq.env(name, &proxy.url)
        });
    let calls = [
        ("ask", serde_json::json!({})),
        ("declared", serde_json::json!({})),
    ];
    let ran = toolq
        .stdin(crate::support::model_response(&calls))
        .run(&["run"])
        .assert_exit(0);
    let texts: Vec<String> = ran
        .result_texts()
        .into_iter()
        .map(|(text, _)| text)
        .collect();
    assert_eq!(texts, ["server", "proxy"]);
    assert_eq!((server.requests().len(), proxy.requests().len()), (1, 1));
}

/// A URL beyond what the HTTP client accepts is an error, not a panic.
#[test]
fn a_url_that_is_too_long_is_an_error() {
    let server = FaultyServer::responding_with(&http_response("200 OK", ""));
    let ran = server.get_call(&format!("/{}", "x".repeat(70_000))).run();
    assert_eq!(transport_phase(ran.outcome()), TransportPhase::Build);
    assert!(server.requests().is_empty());
}
