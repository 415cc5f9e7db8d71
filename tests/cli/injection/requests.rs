//! Hostile values in URLs, queries, headers and bodies, checked on the wire.

use serde_json::json;

use crate::injection::corpus::hostile_texts;
use crate::injection::recording_listener::RecordingListener;
use crate::injection::run_each;
use crate::support::CliSandbox;

/// Percent-encodes all but the unreserved characters of RFC 3986. Written independently of toolq's code.
fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            (byte as char).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Encodes a query value as HTML forms do (`application/x-www-form-urlencoded`), except that a space is `%20`, as in a path.
fn form_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
            (byte as char).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Splits a request into request line, sorted headers and body. Leaves out the idempotency key, which is unpredictable.
fn split_request(connection: &[u8]) -> (String, Vec<String>, String) {
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

fn expected_headers(listener: &RecordingListener, extra: &[String]) -> Vec<String> {
    let mut headers = vec![
        "accept: */*".to_owned(),
        format!("host: {}", listener.authority),
        concat!("user-agent: toolq/", env!("CARGO_PKG_VERSION")).to_owned(),
    ];
    headers.extend_from_slice(extra);
    headers.sort();
    headers
}

/// Each call sends one request to the declared server. A value can't leave its path segment, query pair or JSON string.
#[test]
fn a_value_fills_one_path_segment_query_pair_and_json_string() {
    let listener = RecordingListener::new();
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
    let values = hostile_texts();
    let (_, texts) = run_each(CliSandbox::new().tools(&tools), "send", &values);
    let mut connections = listener.connections().into_iter();
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        let climbs = x.split(['/', '\\']).any(|part| part == "..");
        if x.is_empty() || climbs {
            assert!(*is_error && text.contains("part of a URL's path"), "{text}");
            continue;
        }
        assert!(!is_error, "{x:?}: {text}");
        let (request, headers, body) = split_request(&connections.next().unwrap());
        let (segment, pair) = (percent_encode(x), form_encode(x));
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

/// A value that doesn't fit into one header line is refused, and nothing is sent.
#[test]
fn a_value_stays_within_one_header() {
    let listener = RecordingListener::new();
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
    let values = hostile_texts();
    let (_, texts) = run_each(CliSandbox::new().tools(&tools), "send", &values);
    let mut connections = listener.connections().into_iter();
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        let is_header_text = x.chars().all(|c| matches!(c, ' '..='~' | '\t'));
        assert_eq!(*is_error, !is_header_text, "{x:?}: {text}");
        if is_header_text {
            let (request, headers, body) = split_request(&connections.next().unwrap());
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
