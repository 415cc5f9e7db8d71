//! What is sent: as declared, and nothing more.

use toolq_core::types::{Effect, HttpMethod, JsonDraft, Template, TransportPhase};

use crate::phase;
use crate::scene::{http, text};
use crate::server::{Server, response};
use crate::support::{self, Toolq};

#[test]
fn a_request_is_sent_as_declared() {
    let server = Server::saying(&response("200 OK", "fine\n"));
    let asked = server
        .post()
        .tool(|tool| tool.effect = Effect::Write)
        .request(|request| {
            request.query = vec![("q".to_owned(), text("a&b=c d"))];
            request.headers = vec![("x-one".to_owned(), text("two"))];
        });
    assert_eq!(asked.run().text(), "fine\n");
    let request = &server.heard()[0];
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /?q=a%26b%3Dc+d HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nx-one: two\r\n")
            && head.contains("\r\ncontent-type: application/json\r\n")
    );
    assert!(head.contains("\r\nidempotency-key: "), "{head}");
    assert_eq!(body, r#"{"n":1.00}"#);
    server.get("/").run();
    assert!(!server.heard()[1].contains("idempotency-key"));
}

/// FAULTS 44: a value is put into the tree of a body, never into its text.
#[test]
fn a_body_is_a_tree() {
    let server = Server::saying(&response("200 OK", ""));
    let hostile = JsonDraft::Text(text("\"},\"admin\":true,\u{1}"));
    let body = JsonDraft::Object(vec![("a\"".to_owned(), JsonDraft::Array(vec![hostile]))]);
    server
        .post()
        .request(|request| request.body = Some(body))
        .run();
    assert!(server.heard()[0].ends_with(r#"{"a\"":["\"},\"admin\":true,\u0001"]}"#));
}

/// FAULTS 42, 43: no value changes the server or adds a header.
#[test]
fn values_stay_in_their_place() {
    let server = Server::saying(&response("200 OK", ""));
    let split = server.get("/").request(|request| {
        request.headers = vec![("x".to_owned(), text("a\r\nx-admin: true"))];
    });
    assert_eq!(phase(split.run().outcome()), TransportPhase::Build);
    let declared = Template::text(server.url.clone());
    for url in [
        server.url.replace("http://", "http://user@"),
        server.url.clone() + "0",
        "http://127.0.0.2/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let asked =
            http(HttpMethod::Get, &url).http_backing(|backing| backing.url = declared.clone());
        assert_eq!(phase(asked.run().outcome()), TransportPhase::Build, "{url}");
    }
    assert_eq!(server.heard().len(), 0);
}

/// FAULTS 98: proxies of the environment are ignored, whatever their spelling; a declared one is used.
#[test]
fn only_a_declared_proxy_is_used() {
    let proxy = Server::saying(&response("200 OK", "proxy"));
    let server = Server::saying(&response("200 OK", "server"));
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
        .fold(Toolq::new().tools(&file), |toolq, name| {
            toolq.env(name, &proxy.url)
        });
    let calls = [
        ("ask", serde_json::json!({})),
        ("declared", serde_json::json!({})),
    ];
    let ran = toolq
        .stdin(support::response(&calls))
        .run(&["run"])
        .exits(0);
    let texts: Vec<String> = ran.texts().into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["server", "proxy"]);
    assert_eq!((server.heard().len(), proxy.heard().len()), (1, 1));
}

/// FAULTS 39: a URL that is longer than any client sends is an error, not a panic.
#[test]
fn a_url_can_be_too_long() {
    let server = Server::saying(&response("200 OK", ""));
    let ran = server.get(&format!("/{}", "x".repeat(70_000))).run();
    assert_eq!(phase(ran.outcome()), TransportPhase::Build);
    assert!(server.heard().is_empty());
}
