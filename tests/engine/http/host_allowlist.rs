//! Tools that take a whole URL may contact only listed hosts, and those only at public addresses.

use std::future;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::{
    AnswerForm, Call, CallKind, HostPattern, HttpMethod, Outcome, Template, TemplatePart,
    TransportCause, TransportPhase, Turn, Verdict,
};
use toolq_engine::Resolver;

use crate::http::faulty_server::{FaultyServer, http_response};
use crate::http::transport_phase;
use crate::support::CliSandbox;
use crate::support::engine_turn::{TestCall, TestTurn, http_call};

const TOOLS: &str = r#"
tools:
  fetch:
    input_schema: {type: object, properties: {url: {type: string}}, required: [url]}
    effect: read
    http: {url: "{url}", hosts: [allowed.example, "*.below.example", 93.184.216.34, "[2606:2800::1]", "müsli.example"]}
"#;

/// Returns the URL that a call with `url` would request, or why it is refused.
fn check_url(checker: &mut CallChecker, url: &str) -> Result<String, String> {
    let input = serde_json::json!({"url": url}).to_string();
    let call = Call {
        turn: 0,
        position: 0,
        id: "id".to_owned(),
        name: "fetch".into(),
        input: Input::parse(&input).map_err(Box::new),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    };
    let turn = Turn::of_calls(0, vec![call], AnswerForm::Message);
    match checker.check_turn(turn).remove(0).verdict {
        Verdict::Rejected(rejection) => Err(rejection.details[0].message.clone()),
        Verdict::Accepted(accepted) => match accepted.invocation {
            Some(toolq_core::types::Invocation::Http(request)) => Ok(request.url.to_string()),
            other => panic!("{other:?}"),
        },
    }
}

fn checker() -> CallChecker {
    let loaded = parse_tools_file(TOOLS, Path::new("/srv"), Path::new("/srv"));
    let tools = loaded
        .tools
        .unwrap_or_else(|| panic!("{:#?}", loaded.problems));
    CallChecker::new(Arc::new(tools))
}

/// No spelling of an unlisted host is mistaken for a listed one.
#[test]
fn spellings_of_unlisted_hosts_are_refused() {
    let mut checker = checker();
    let spellings = [
        // This machine and private networks.
        "http://127.0.0.1/",
        "http://localhost/",
        "http://localhost./",
        "http://LOCALHOST/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://0x7f.0.0.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://017700000001/",
        "http://127.0.0.1./",
        "http://0/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[ff02::1]/",
        "http://[::ffff:93.184.216.34]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.43518/",
        "http://0xa9fea9fe/",
        "http://100.100.100.200/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://１２７.0.0.1/",
        "http://①②⑦.0.0.1/",
        "http://%31%32%37.0.0.1/",
        // Names that resemble a listed one.
        "http://allowed.example.evil.com/",
        "http://evilallowed.example/",
        "http://allowed.example./",
        "http://xallowed.example/",
        "http://below.example/",
        "http://evilbelow.example/",
        "http://.below.example/",
        "http://a.below.example.evil.com/",
        "http://a.below.example./",
        "http://allowed-example/",
        "http://allowed.examp\u{4cf}e/",
        "http://xn--msli-1ra.example/",
        // User info, and URLs on which parsers disagree.
        "http://allowed.example@evil.com/",
        "http://allowed.example:80@evil.com/",
        "http://user@allowed.example/",
        "http://user:pass@allowed.example/",
        "http://:pass@allowed.example/",
        "http://evil.com#@allowed.example/",
        "http://evil.com?@allowed.example/",
        "http://evil.com/@allowed.example",
        "http://evil.com\\@allowed.example/",
        "http://allowed.example\\@evil.com/",
        "http:\\\\allowed.example/",
        "http://evil.com%2f@allowed.example/",
        "http://evil.com%00.allowed.example/",
        "http://evil.com\0.allowed.example/",
        "http://evil.com\n.allowed.example/",
        "http://allowed.example\r\nhost: evil.com/",
        "http://allowed.example /",
        " http://allowed.example/",
        "http://allowed.example/\r\nx: y",
        "http://allo\twed.example/",
        "http://allowed.example\u{a0}/",
        "http://allowed.example:99999/",
        "http://allowed.example:80:80/",
        "http://allowed.example%2eevil.com/",
        // Other schemes, no scheme, no host.
        "file:///etc/passwd",
        "file://allowed.example/etc/passwd",
        "ftp://allowed.example/",
        "gopher://allowed.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "ws://allowed.example/",
        "//allowed.example/",
        "allowed.example",
        "/etc/passwd",
        "http:",
        "http://",
        "http:///",
        "https://?",
        "",
        "http://[",
        "http://[::1",
        "http://[allowed.example]/",
    ];
    assert!(spellings.len() >= 80);
    for url in spellings {
        assert!(check_url(&mut checker, url).is_err(), "{url:?}");
    }
}

/// toolq requests the URL as parsed and normalized, so that the checked host is the one contacted.
#[test]
fn listed_hosts_are_requested() {
    let mut checker = checker();
    for (url, requested) in [
        ("https://allowed.example", "https://allowed.example/"),
        ("HTTP://ALLOWED.example:8080/a b?x#frag", ""),
        (
            "HTTP://ALLOWED.example:8080/a/../b?x={y}&${Z}",
            "http://allowed.example:8080/b?x={y}&${Z}",
        ),
        ("http:allowed.example/x", "http://allowed.example/x"),
        ("http://allowed。example/", "http://allowed.example/"),
        ("http://%61llowed.example/", "http://allowed.example/"),
        ("http://a.below.example/", "http://a.below.example/"),
        ("http://a.b.BELOW.example:1/", "http://a.b.below.example:1/"),
        ("http://93.184.216.34/", "http://93.184.216.34/"),
        ("http://0x5db8d822/", "http://93.184.216.34/"),
        ("http://[2606:2800:0::0:1]/", "http://[2606:2800::1]/"),
        (
            "http://müsli.example/ü",
            "http://xn--msli-0ra.example/%C3%BC",
        ),
    ] {
        match check_url(&mut checker, url) {
            Ok(found) => assert_eq!(found, requested, "{url}"),
            Err(error) => assert!(
                requested.is_empty() && error.contains("spaces"),
                "{url}: {error}"
            ),
        }
    }
    let refused = check_url(&mut checker, "http://evil.example/").unwrap_err();
    assert!(
        refused.starts_with("must have one of these hosts: allowed.example, *.below.example, "),
        "{refused}"
    );
}

/// Returns a call of a tool whose whole URL is an input value, skipping the check of its input.
fn whole_url_call(url: &str, hosts: &[&str]) -> TestCall {
    http_call(HttpMethod::Get, url).http_backing(|backing| {
        let value = TemplatePart::Value {
            path: vec!["url".to_owned()],
            optional: false,
            splat: false,
        };
        backing.url = Template { parts: vec![value] };
        let exact = |host: &&str| HostPattern::Exact((*host).to_owned());
        backing.allowed_hosts = Some(hosts.iter().map(exact).collect());
    })
}

fn resolver_to(addresses: &[&str]) -> Resolver {
    let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    Resolver::new(move |_| future::ready(Ok(addresses.clone())))
}

/// A listed host that resolves to a private address isn't contacted. If the author wrote the host into the URL, it is.
#[test]
fn private_addresses_are_refused_at_connect() {
    let server = FaultyServer::responding_with(&http_response("200 OK", "inside"));
    let url = format!("http://allowed.example:{}/", server.port());
    for addresses in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
    ] {
        let ran = TestTurn::default()
            .resolver(resolver_to(addresses))
            .call(whole_url_call(&url, &["allowed.example"]))
            .run();
        assert_eq!(transport_phase(ran.outcome()), TransportPhase::Connect);
        assert!(
            matches!(ran.outcome(), Outcome::TransportFailed(error) if error.cause == TransportCause::NonPublicAddress)
        );
        let outcome_text = format!("{:?}", ran.outcome());
        assert!(
            outcome_text.contains("allowed.example resolves to an address that is not public"),
            "{outcome_text}"
        );
    }
    assert!(server.requests().is_empty());
    let ran = TestTurn::default()
        .resolver(resolver_to(&["127.0.0.1"]))
        .call(http_call(HttpMethod::Get, &url))
        .run();
    assert_eq!(ran.text(), "inside");
}

/// Hosts and addresses are checked again right before sending, in case the input check let one through.
#[test]
fn hosts_are_checked_again_before_sending() {
    let server = FaultyServer::responding_with(&http_response("200 OK", "inside"));
    for (url, hosts) in [
        (server.url.as_str(), &["127.0.0.1"][..]),
        (&server.url, &[]),
        ("http://allowed.example/", &[]),
        ("http://other.example/", &["allowed.example"]),
        ("http://user@allowed.example/", &["allowed.example"]),
        ("ftp://allowed.example/", &["allowed.example"]),
    ] {
        let ran = whole_url_call(url, hosts).run();
        assert_eq!(
            transport_phase(ran.outcome()),
            TransportPhase::Build,
            "{url}"
        );
    }
    assert!(server.requests().is_empty());
}

/// With the real binary, a refused URL is invalid input, and no call starts.
#[test]
fn a_refused_url_starts_nothing() {
    let server = FaultyServer::responding_with(&http_response("200 OK", "inside"));
    let tools = TOOLS.to_owned()
        + "  no_hosts:\n    input_schema: {type: object, properties: {url: {type: string}}, required: [url]}\n    http: {url: \"{url}\", hosts: []}\n";
    let url = serde_json::json!({"url": server.url});
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin(crate::support::model_response(&[
            ("fetch", url.clone()),
            ("no_hosts", url),
        ]))
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert!(
        texts[0]
            .0
            .contains("- /url: must have one of these hosts: "),
        "{}",
        texts[0].0
    );
    assert!(
        texts[1]
            .0
            .contains("- /url: has a host, but this tool may not contact any"),
        "{}",
        texts[1].0
    );
    assert!(
        ran.log_records()
            .iter()
            .all(|record| record["type"] != "tool_start")
    );
    assert!(server.requests().is_empty());
}
