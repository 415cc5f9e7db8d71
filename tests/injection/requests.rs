//! URLs, queries, headers, bodies: the bytes on the wire.

use serde_json::json;

use crate::corpus::hostile;
use crate::listener::Listener;
use crate::run_each;
use crate::support::Toolq;

/// Percent-encoding of RFC 3986, written by itself: all but the unreserved characters.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            (byte as char).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// A query pair as HTML forms have it.
fn form_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
            (byte as char).to_string()
        }
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Request line, headers sorted, body.
fn parts(connection: &[u8]) -> (String, Vec<String>, String) {
    let text = String::from_utf8(connection.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n").map(str::to_owned);
    let request = lines.next().unwrap();
    let mut headers: Vec<String> = lines
        .filter(|line| !line.starts_with("idempotency-key: "))
        .collect();
    headers.sort();
    (request, headers, body.to_owned())
}

fn expected_headers(listener: &Listener, more: &[String]) -> Vec<String> {
    let mut headers = vec![
        "accept: */*".to_owned(),
        format!("host: {}", listener.authority),
        concat!("user-agent: toolq/", env!("CARGO_PKG_VERSION")).to_owned(),
    ];
    headers.extend_from_slice(more);
    headers.sort();
    headers
}

/// FAULTS 42, 43, 44: one request a call, to the declared server: a segment, a pair, a value in the tree.
#[test]
fn a_value_is_one_segment_pair_and_value() {
    let listener = Listener::new();
    let tools = format!(
        r#"
tools:
  send:
    input_schema: {{type: object, properties: {{x: {{type: string}}}}, required: [x]}}
    http:
      method: POST
      url: "http://{}/a/{{x}}/b-{{x}}?own={{x}}"
      query: {{q: "{{x}}"}}
      body: {{whole: "{{x}}", part: "<{{x}}>", list: ["{{x}}", 1.50]}}
"#,
        listener.authority
    );
    let values = hostile();
    let (_, texts) = run_each(Toolq::new().tools(&tools), "send", &values);
    let mut connections = listener.connections().into_iter();
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        if x.is_empty() {
            assert!(*is_error && text.contains("part of a URL's path"), "{text}");
            continue;
        }
        assert!(!is_error, "{x:?}: {text}");
        let (request, headers, body) = parts(&connections.next().unwrap());
        let (segment, pair) = (encoded(x), form_encoded(x));
        assert_eq!(
            request,
            format!("POST /a/{segment}/b-{segment}?own={segment}&q={pair} HTTP/1.1")
        );
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            json,
            json!({"whole": x, "part": format!("<{x}>"), "list": [x, 1.5]})
        );
        let framing = [
            format!("content-length: {}", body.len()),
            "content-type: application/json".to_owned(),
        ];
        assert_eq!(headers, expected_headers(&listener, &framing), "{x:?}");
    }
    assert_eq!(connections.next(), None);
}

/// FAULTS 43: a header is one line; what can't be one is refused, and nothing is sent.
#[test]
fn a_value_is_one_header() {
    let listener = Listener::new();
    let tools = format!(
        r#"
tools:
  send:
    input_schema: {{type: object, properties: {{x: {{type: string}}}}, required: [x]}}
    effect: idempotent
    http: {{url: "http://{}/", headers: {{x-own: "<{{x}}>"}}}}
"#,
        listener.authority
    );
    let values = hostile();
    let (_, texts) = run_each(Toolq::new().tools(&tools), "send", &values);
    let mut connections = listener.connections().into_iter();
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        let visible = x.chars().all(|c| matches!(c, ' '..='~' | '\t'));
        assert_eq!(*is_error, !visible, "{x:?}: {text}");
        if visible {
            let (request, headers, body) = parts(&connections.next().unwrap());
            assert_eq!((request.as_str(), body.as_str()), ("GET / HTTP/1.1", ""));
            assert_eq!(
                headers,
                expected_headers(&listener, &[format!("x-own: <{x}>")]),
                "{x:?}"
            );
        }
    }
    assert_eq!(connections.next(), None);
}
