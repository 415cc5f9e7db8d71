//! Tools that take a whole URL: listed hosts only, and only at public addresses.

use std::future;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use toolq_core::check::Checker;
use toolq_core::json::Input;
use toolq_core::tools_file::load;
use toolq_core::types::{
    Call, Form, HostPattern, HttpMethod, Part, Template, TransportPhase, Turn, Verdict,
};
use toolq_engine::Resolver;

use crate::phase;
use crate::scene::{Asked, Scene, http};
use crate::server::{Server, response};
use crate::support::{self, Toolq};

const TOOLS: &str = r#"
tools:
  fetch:
    input_schema: {type: object, properties: {url: {type: string}}, required: [url]}
    effect: read
    http: {url: "{url}", hosts: [allowed.example, "*.below.example", 93.184.216.34, "[2606:2800::1]", "müsli.example"]}
"#;

/// What is asked for `url`, or why nothing is.
fn checked(checker: &mut Checker, url: &str) -> Result<String, String> {
    let input = serde_json::json!({"url": url}).to_string();
    let call = Call {
        turn: 0,
        position: 0,
        id: "id".to_owned(),
        name: "fetch".to_owned(),
        input: Input::parse(&input),
        within: None,
    };
    let turn = Turn {
        number: 0,
        calls: vec![call],
        answered: 0,
        form: Form::Message,
        cut_off: false,
        started: Vec::new(),
    };
    match checker.turn(turn).remove(0).verdict {
        Verdict::Rejected(rejection) => Err(rejection.details[0].message.clone()),
        Verdict::Accepted(accepted) => match accepted.invocation {
            Some(toolq_core::types::Invocation::Http(request)) => Ok(request.url.to_string()),
            other => panic!("{other:?}"),
        },
    }
}

fn checker() -> Checker {
    let loaded = load(TOOLS, Path::new("/srv"), Path::new("/srv"));
    let tools = loaded
        .tools
        .unwrap_or_else(|| panic!("{:#?}", loaded.problems));
    Checker::new(Arc::new(tools))
}

/// FAULTS 96: no spelling of another place is taken for a listed host.
#[test]
fn other_spellings_are_refused() {
    let mut checker = checker();
    let spellings = [
        // The machine itself, and its neighbours.
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
        // Names that look like a listed one.
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
        // Users, and parsers that disagree.
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
        // Other schemes, and none.
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
        assert!(checked(&mut checker, url).is_err(), "{url:?}");
    }
}

/// FAULTS 96: what is asked is what the parser read.
#[test]
fn listed_hosts_are_asked() {
    let mut checker = checker();
    for (url, asked) in [
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
        match checked(&mut checker, url) {
            Ok(found) => assert_eq!(found, asked, "{url}"),
            Err(why) => assert!(asked.is_empty() && why.contains("spaces"), "{url}: {why}"),
        }
    }
    let refused = checked(&mut checker, "http://evil.example/").unwrap_err();
    assert!(
        refused.starts_with("must have one of these hosts: allowed.example, *.below.example, "),
        "{refused}"
    );
}

/// A call of a tool whose URL is a value, past the check of its input.
fn whole(url: &str, hosts: &[&str]) -> Asked {
    http(HttpMethod::Get, url).http_backing(|backing| {
        let value = Part::Value {
            path: vec!["url".to_owned()],
            optional: false,
            splat: false,
        };
        backing.url = Template { parts: vec![value] };
        let exact = |host: &&str| HostPattern::Exact((*host).to_owned());
        backing.hosts = Some(hosts.iter().map(exact).collect());
    })
}

fn pointing_to(addresses: &[&str]) -> Resolver {
    let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    Resolver::new(move |_| future::ready(Ok(addresses.clone())))
}

/// FAULTS 96, 97: a listed name that leads to a private address is not connected to; the same name in a URL of the
/// author's own is.
#[test]
fn private_addresses_are_refused_where_it_connects() {
    let server = Server::saying(&response("200 OK", "inside"));
    let url = format!("http://allowed.example:{}/", server.port());
    for addresses in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
    ] {
        let ran = Scene::default()
            .resolver(pointing_to(addresses))
            .call(whole(&url, &["allowed.example"]))
            .run();
        assert_eq!(phase(ran.outcome()), TransportPhase::Connect);
        let told = format!("{:?}", ran.outcome());
        assert!(
            told.contains("allowed.example has an address that is not public"),
            "{told}"
        );
    }
    assert!(server.heard().is_empty());
    let ran = Scene::default()
        .resolver(pointing_to(&["127.0.0.1"]))
        .call(http(HttpMethod::Get, &url))
        .run();
    assert_eq!(ran.text(), "inside");
}

/// FAULTS 87, 96: what the check let through is judged again where it is sent: addresses, hosts, an empty list.
#[test]
fn a_request_is_judged_again() {
    let server = Server::saying(&response("200 OK", "inside"));
    for (url, hosts) in [
        (server.url.as_str(), &["127.0.0.1"][..]),
        (&server.url, &[]),
        ("http://allowed.example/", &[]),
        ("http://other.example/", &["allowed.example"]),
        ("http://user@allowed.example/", &["allowed.example"]),
        ("ftp://allowed.example/", &["allowed.example"]),
    ] {
        let ran = whole(url, hosts).run();
        assert_eq!(phase(ran.outcome()), TransportPhase::Build, "{url}");
    }
    assert!(server.heard().is_empty());
}

/// FAULTS 9, 87: from the outside: a refused URL is an invalid input; nothing starts.
#[test]
fn a_refused_url_starts_nothing() {
    let server = Server::saying(&response("200 OK", "inside"));
    let tools = TOOLS.to_owned()
        + "  none:\n    input_schema: {type: object, properties: {url: {type: string}}, required: [url]}\n    http: {url: \"{url}\", hosts: []}\n";
    let url = serde_json::json!({"url": server.url});
    let ran = Toolq::new()
        .tools(&tools)
        .stdin(support::response(&[("fetch", url.clone()), ("none", url)]))
        .run(&["run"])
        .exits(0);
    let texts = ran.texts();
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
            .contains("- /url: names a host, and this tool may ask none"),
        "{}",
        texts[1].0
    );
    assert!(
        ran.log()
            .iter()
            .all(|record| record["type"] != "tool_start")
    );
    assert!(server.heard().is_empty());
}
