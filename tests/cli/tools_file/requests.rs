//! `http`: URLs, headers, bodies and hosts.

use crate::tools_file::{assert_no_problems, assert_refused, assert_warned, file_with_tool};

/// Input values can't reach a URL's scheme, user, host or port.
#[test]
fn a_value_never_chooses_the_server() {
    let url = |url: &str| file_with_tool(&format!("http: {{url: \"{url}\"}}"));
    assert_refused(
        url,
        r#"
        {a} ⇒ {a} ⇒ can't be part of a URL's
        {a}://host/ ⇒ {a} ⇒ can't be part of a URL's
        http://{a}/ ⇒ {a} ⇒ can't be part of a URL's
        http://{a}@host/ ⇒ {a} ⇒ can't be part of a URL's
        http://user:{a}@host/ ⇒ {a} ⇒ can't be part of a URL's
        http://host{a}/x ⇒ {a} ⇒ can't be part of a URL's
        http://host:{n}/ ⇒ {n} ⇒ can't be part of a URL's
        http://${HOST}{a} ⇒ {a} ⇒ can't be part of a URL's
        ${BASE}{a} ⇒ {a} ⇒ can't be part of a URL's
        http:///{a}/x ⇒ {a} ⇒ can't be part of a URL's
        http:/{a}/x ⇒ {a} ⇒ can't be part of a URL's
        http:\\{a}/x ⇒ {a} ⇒ can't be part of a URL's
        ftp://host/ ⇒ "ftp://host/" ⇒ neither http nor https
        file:///etc/passwd ⇒ "file:///etc/passwd" ⇒ neither http nor https
        host/path ⇒ "host/path" ⇒ isn't a URL
        http:// ⇒ "http://" ⇒ isn't a URL
        http:///path ⇒ "http:///path" ⇒ no host
        "#,
    );
    assert_no_problems(
        url,
        r"
        http://host/{a}/{n}?q={a}
        http://${HOST}:${PORT}/{a}
        ${BASE}/{a}
        ${BASE:-http://127.0.0.1:80}?q={a}
        https://[::1]:8080/x/{a}
        ",
    );
}

/// Input values can't set credentials or the host, and the headers that frame a message are reserved for toolq.
#[test]
fn values_cannot_set_sensitive_headers() {
    let header = |pair: &str| {
        file_with_tool(&format!(
            "http: {{url: \"http://h/\", headers: {{{pair}}}}}"
        ))
    };
    assert_refused(
        header,
        r#"
        Authorization: "Bearer {a}" ⇒ {a} ⇒ can't be used in this header
        Host: "{a}" ⇒ {a} ⇒ can't be used in this header
        cookie: "s={a}" ⇒ {a} ⇒ can't be used in this header
        Proxy-Authorization: "{a}" ⇒ {a} ⇒ can't be used in this header
        Idempotency-Key: "{a}" ⇒ {a} ⇒ can't be used in this header
        Content-Length: "1" ⇒ Content-Length ⇒ set by toolq
        transfer-encoding: chunked ⇒ transfer-encoding ⇒ set by toolq
        Connection: close ⇒ Connection ⇒ set by toolq
        "{a}": "1" ⇒ "{a}" ⇒ isn't a valid header name
        "x y": "1" ⇒ "x y" ⇒ isn't a valid header name
        x-a: "1\r\ny: 2" ⇒ "1\r\ny: 2" ⇒ single line
        x-a: "1", X-A: "2" ⇒ X-A ⇒ duplicate header
        "#,
    );
    assert_no_problems(
        header,
        r#"
        Authorization: "Bearer ${TOKEN}", Host: other.example
        x-a: "{a} {n}", x-b: "{o?}"
        "#,
    );
}

/// Names in query and body are constants, only values are templates; other keys have their own rules.
#[test]
fn other_request_keys_are_checked() {
    let request = |keys: &str| file_with_tool(&format!("http: {{url: \"http://h/\", {keys}}}"));
    assert_refused(
        request,
        r#"
        query: {"{a}": "1"} ⇒ "{a}" ⇒ can't be a template
        body: {"{a}": "1"} ⇒ "{a}" ⇒ can't be a template
        body: {x: [{y: "{bad}"}]} ⇒ {bad} ⇒ has no `bad`
        proxy: "http://{a}/" ⇒ {a} ⇒ choose the proxy
        select: rate ⇒ rate ⇒ isn't a JSON pointer
        select: "/a~2" ⇒ "/a~2" ⇒ isn't a JSON pointer
        success_status: [299-200] ⇒ 299-200 ⇒ isn't an HTTP status
        success_status: [99] ⇒ 99 ⇒ isn't an HTTP status
        redirects: 11 ⇒ 11 ⇒ too many
        method: TRACE ⇒ TRACE ⇒ cannot be `TRACE`
        form: {a: "1"}, body: {a: "1"} ⇒ form ⇒ one body
        form: {"{a}": "1"} ⇒ "{a}" ⇒ can't be a template
        form: {x: "{bad}"} ⇒ {bad} ⇒ has no `bad`
        "#,
    );
    assert_refused(file_with_tool, "http: {method: GET} ⇒ http ⇒ has no `url`");
    assert_no_problems(
        request,
        r#"
        method: POST, body: {a: "{a}", n: 1, o: ["{o?}", ~, true], t: "x {a}"}
        query: {q: "{a}", "x y": "{o?}"}, success_status: [200-299, 404], select: /a/0~1b
        body: none, proxy: "${PROXY}", redirects: 3
        method: POST, form: {a: "{a}", "x y": "{o?} ${SECRET}"}
        "#,
    );
}

/// A tool that takes a whole URL needs `hosts`. Every entry must be a host name or pattern that can be public.
#[test]
fn listed_hosts_must_be_public_hosts() {
    let http = |keys: &str| file_with_tool(&format!("http: {{{keys}}}"));
    assert_refused(
        http,
        r#"
        url: "{a}" ⇒ {a} ⇒ can't be part of a URL's
        url: "{a}", hosts: a.example ⇒ a.example ⇒ must be
        url: "http://h/{a}", hosts: [a.example] ⇒ "http://h/{a}" ⇒ single input value
        url: "{a}/x", hosts: [a.example] ⇒ "{a}/x" ⇒ single input value
        url: "{a}", hosts: [a.example], proxy: "http://p/" ⇒ "http://p/" ⇒ can't check
        url: "{a}", hosts: ["*"] ⇒ "*" ⇒ isn't a host
        url: "{a}", hosts: ["*.*.example"] ⇒ "*.*.example" ⇒ isn't a host
        url: "{a}", hosts: ["a.*.example"] ⇒ "a.*.example" ⇒ isn't a host
        url: "{a}", hosts: ["https://a.example"] ⇒ "https://a.example" ⇒ isn't a host
        url: "{a}", hosts: ["a.example:80"] ⇒ "a.example:80" ⇒ isn't a host
        url: "{a}", hosts: ["a.example/x"] ⇒ "a.example/x" ⇒ isn't a host
        url: "{a}", hosts: ["a.example."] ⇒ "a.example." ⇒ isn't a host
        url: "{a}", hosts: ["%61.example"] ⇒ "%61.example" ⇒ isn't a host
        url: "{a}", hosts: [""] ⇒ "" ⇒ isn't a host
        url: "{a}", hosts: ["*.1.2.3"] ⇒ "*.1.2.3" ⇒ isn't a host
        url: "{a}", hosts: [localhost] ⇒ localhost ⇒ isn't public
        url: "{a}", hosts: ["*.localhost"] ⇒ "*.localhost" ⇒ isn't public
        url: "{a}", hosts: [127.0.0.1] ⇒ 127.0.0.1 ⇒ isn't public
        url: "{a}", hosts: ["0x7f.1"] ⇒ "0x7f.1" ⇒ isn't public
        url: "{a}", hosts: ["[::1]"] ⇒ "[::1]" ⇒ isn't public
        "#,
    );
    assert_warned(http, r#"url: "{a}", hosts: [] ⇒ [ ⇒ no host is listed"#);
    assert_no_problems(
        http,
        r#"
        url: "{a}", hosts: [a.example, "*.b.example", 93.184.216.34, "[2606:2800::1]", "münchen.example"]
        url: "{a}", hosts: ["A.Example"], redirects: 3, query: {q: "{n}"}
        "#,
    );
}
