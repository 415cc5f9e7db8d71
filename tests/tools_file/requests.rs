//! URLs, headers and bodies.

use crate::{quiet, refused, tool, warned};

/// FAULTS 42.
#[test]
fn a_value_never_chooses_the_server() {
    let url = |url: &str| tool(&format!("http: {{url: \"{url}\"}}"));
    refused(
        url,
        r#"
        {a} ⇒ {a} ⇒ cannot stand in a URL's
        {a}://host/ ⇒ {a} ⇒ cannot stand in a URL's
        http://{a}/ ⇒ {a} ⇒ cannot stand in a URL's
        http://{a}@host/ ⇒ {a} ⇒ cannot stand in a URL's
        http://user:{a}@host/ ⇒ {a} ⇒ cannot stand in a URL's
        http://host{a}/x ⇒ {a} ⇒ cannot stand in a URL's
        http://host:{n}/ ⇒ {n} ⇒ cannot stand in a URL's
        http://${HOST}{a} ⇒ {a} ⇒ cannot stand in a URL's
        ${BASE}{a} ⇒ {a} ⇒ cannot stand in a URL's
        http:///{a}/x ⇒ {a} ⇒ cannot stand in a URL's
        http:/{a}/x ⇒ {a} ⇒ cannot stand in a URL's
        http:\\{a}/x ⇒ {a} ⇒ cannot stand in a URL's
        ftp://host/ ⇒ "ftp://host/" ⇒ neither http nor https
        file:///etc/passwd ⇒ "file:///etc/passwd" ⇒ neither http nor https
        host/path ⇒ "host/path" ⇒ no URL
        http:// ⇒ "http://" ⇒ no URL
        http:///path ⇒ "http:///path" ⇒ no host
        "#,
    );
    quiet(
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

/// FAULTS 43.
#[test]
fn headers_are_the_authors() {
    let header = |pair: &str| {
        tool(&format!(
            "http: {{url: \"http://h/\", headers: {{{pair}}}}}"
        ))
    };
    refused(
        header,
        r#"
        Authorization: "Bearer {a}" ⇒ {a} ⇒ cannot be this header
        Host: "{a}" ⇒ {a} ⇒ cannot be this header
        cookie: "s={a}" ⇒ {a} ⇒ cannot be this header
        Proxy-Authorization: "{a}" ⇒ {a} ⇒ cannot be this header
        Content-Length: "1" ⇒ Content-Length ⇒ written by toolq
        transfer-encoding: chunked ⇒ transfer-encoding ⇒ written by toolq
        Connection: close ⇒ Connection ⇒ written by toolq
        "{a}": "1" ⇒ "{a}" ⇒ no name of a header
        "x y": "1" ⇒ "x y" ⇒ no name of a header
        x-a: "1\r\ny: 2" ⇒ "1\r\ny: 2" ⇒ one line
        x-a: "1", X-A: "2" ⇒ X-A ⇒ twice
        "#,
    );
    quiet(
        header,
        r#"
        Authorization: "Bearer ${TOKEN}", Host: other.example
        x-a: "{a} {n}", x-b: "{o?}"
        "#,
    );
}

/// FAULTS 44: names of a body are constant, its strings are templates.
#[test]
fn the_rest_of_a_request() {
    let request = |keys: &str| tool(&format!("http: {{url: \"http://h/\", {keys}}}"));
    refused(
        request,
        r#"
        query: {"{a}": "1"} ⇒ "{a}" ⇒ no template
        body: {"{a}": "1"} ⇒ "{a}" ⇒ no template
        body: {x: [{y: "{bad}"}]} ⇒ {bad} ⇒ has no `bad`
        proxy: "http://{a}/" ⇒ {a} ⇒ choose the proxy
        select: rate ⇒ rate ⇒ no JSON pointer
        select: "/a~2" ⇒ "/a~2" ⇒ no JSON pointer
        success_status: [299-200] ⇒ 299-200 ⇒ no HTTP status
        success_status: [99] ⇒ 99 ⇒ no HTTP status
        redirects: 11 ⇒ 11 ⇒ a loop
        method: TRACE ⇒ TRACE ⇒ cannot be `TRACE`
        "#,
    );
    refused(tool, "http: {method: GET} ⇒ http ⇒ has no `url`");
    quiet(
        request,
        r#"
        method: POST, body: {a: "{a}", n: 1, o: ["{o?}", ~, true], t: "x {a}"}
        query: {q: "{a}", "x y": "{o?}"}, success_status: [200-299, 404], select: /a/0~1b
        body: none, proxy: "${PROXY}", redirects: 3
        "#,
    );
}

/// FAULTS 21, 87, 96: a tool that takes a whole URL says whom it may ask; what is never asked is no entry.
#[test]
fn hosts_are_hosts() {
    let http = |keys: &str| tool(&format!("http: {{{keys}}}"));
    refused(
        http,
        r#"
        url: "{a}" ⇒ {a} ⇒ cannot stand in a URL's
        url: "{a}", hosts: a.example ⇒ a.example ⇒ must be
        url: "http://h/{a}", hosts: [a.example] ⇒ "http://h/{a}" ⇒ one value of the input
        url: "{a}/x", hosts: [a.example] ⇒ "{a}/x" ⇒ one value of the input
        url: "{a}", hosts: [a.example], proxy: "http://p/" ⇒ "http://p/" ⇒ can't see
        url: "{a}", hosts: ["*"] ⇒ "*" ⇒ no host
        url: "{a}", hosts: ["*.*.example"] ⇒ "*.*.example" ⇒ no host
        url: "{a}", hosts: ["a.*.example"] ⇒ "a.*.example" ⇒ no host
        url: "{a}", hosts: ["https://a.example"] ⇒ "https://a.example" ⇒ no host
        url: "{a}", hosts: ["a.example:80"] ⇒ "a.example:80" ⇒ no host
        url: "{a}", hosts: ["a.example/x"] ⇒ "a.example/x" ⇒ no host
        url: "{a}", hosts: ["a.example."] ⇒ "a.example." ⇒ no host
        url: "{a}", hosts: ["%61.example"] ⇒ "%61.example" ⇒ no host
        url: "{a}", hosts: [""] ⇒ "" ⇒ no host
        url: "{a}", hosts: ["*.1.2.3"] ⇒ "*.1.2.3" ⇒ no host
        url: "{a}", hosts: [localhost] ⇒ localhost ⇒ not public
        url: "{a}", hosts: ["*.localhost"] ⇒ "*.localhost" ⇒ not public
        url: "{a}", hosts: [127.0.0.1] ⇒ 127.0.0.1 ⇒ not public
        url: "{a}", hosts: ["0x7f.1"] ⇒ "0x7f.1" ⇒ not public
        url: "{a}", hosts: ["[::1]"] ⇒ "[::1]" ⇒ not public
        "#,
    );
    warned(http, r#"url: "{a}", hosts: [] ⇒ [ ⇒ no host is listed"#);
    quiet(
        http,
        r#"
        url: "{a}", hosts: [a.example, "*.b.example", 93.184.216.34, "[2606:2800::1]", "münchen.example"]
        url: "{a}", hosts: ["A.Example"], redirects: 3, query: {q: "{n}"}
        "#,
    );
}
