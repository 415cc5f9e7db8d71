//! Hostile values against every place they can be put.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::check::fill::dispatch::invocation;
use crate::json::Input;
use crate::testing::{template, tool_with_backing};
use crate::types::{
    Argument, Backing, Body, BodyTemplate, CommandBacking, CommandInvocation, Detail, HttpBacking,
    HttpInvocation, HttpMethod, Invocation, JsonDraft, Leftovers, Limits, Piece, Stdin, StdinDraft,
};
use crate::url::{AddressFault, request_url};

fn command(arguments: &[&str]) -> CommandBacking {
    let mut after_dashes = false;
    let argument = |text: &&str| {
        let argument = Argument {
            template: template(text),
            after_dashes,
        };
        after_dashes |= *text == "--";
        argument
    };
    CommandBacking {
        program: "prog".to_owned(),
        arguments: arguments.iter().map(argument).collect(),
        stdin: Stdin::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        leftovers: Leftovers::default(),
        limits: Limits::default(),
    }
}

fn http(url: &str) -> HttpBacking {
    HttpBacking {
        method: HttpMethod::Post,
        url: template(url),
        hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: Body::None,
        success_status: Vec::new(),
        select: None,
        redirects: 0,
        proxy: None,
    }
}

fn run(backing: CommandBacking, input: &Value) -> Result<CommandInvocation, Vec<Detail>> {
    let input = Input::parse(&input.to_string()).unwrap();
    match invocation(&tool_with_backing(Backing::Command(backing)), &input)? {
        Some(Invocation::Command(command)) => Ok(command),
        other => panic!("{other:?}"),
    }
}

fn send(backing: &HttpBacking, input: &Value) -> Result<HttpInvocation, Vec<Detail>> {
    let input = Input::parse(&input.to_string()).unwrap();
    match invocation(&tool_with_backing(Backing::Http(backing.clone())), &input)? {
        Some(Invocation::Http(request)) => Ok(request),
        other => panic!("{other:?}"),
    }
}

fn argv(arguments: &[&str], input: &Value) -> Result<Vec<String>, Vec<Detail>> {
    Ok(run(command(arguments), input)?.argv.split_off(1))
}

fn messages(refused: Vec<Detail>) -> Vec<String> {
    refused
        .into_iter()
        .map(|detail| format!("{}: {}", detail.path, detail.message))
        .collect()
}

/// 18 × 6 × 6 texts that shells, URLs, JSON, templates, option parsers and terminals read as something else.
fn hostile() -> impl Iterator<Item = String> {
    let cores = [
        "",
        "a b",
        "$(touch x)",
        "`touch x`",
        "; touch x",
        "| tee x",
        "${HOME}",
        "{b}",
        "{{b}}",
        "%s%n",
        "../..",
        "\"},\"admin\":true",
        "\r\nX-Evil: 1",
        "\u{202e}txt",
        "\u{1b}]52;c;x\u{7}",
        "*?[a-z]~",
        "\\",
        "é\u{301}\u{0}",
    ];
    let ends = ["", "'", "\"", "\n", "-", "%2e%2e/"];
    cores.into_iter().flat_map(move |core| {
        ends.into_iter().flat_map(move |before| {
            ends.into_iter()
                .map(move |after| format!("{before}{core}{after}"))
        })
    })
}

fn value() -> impl Strategy<Value = String> {
    let corpus: Vec<String> = hostile().collect();
    assert!(corpus.len() >= 500);
    prop_oneof![prop::sample::select(corpus), any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// FAULTS 34, 37, 38: n elements are n arguments, and a value is looked at once.
    #[test]
    fn a_value_is_a_part_of_one_argument(a in value(), b in value(), items in prop::collection::vec(value(), 0..4)) {
        let input = json!({"a": a, "b": b, "items": items});
        let filled = argv(&["{b} is text", "--x={a}", "--", "{a}", "{items...}", "{none?}", "{a}{b}"], &input);
        let all = [&a, &b].into_iter().chain(&items);
        if all.clone().any(|text| text.contains('\0')) {
            prop_assert!(messages(filled.unwrap_err()).iter().any(|line| line.contains("NUL")));
        } else if b.starts_with('-') {
            prop_assert_eq!(filled.unwrap_err().len(), 1);
        } else {
            let mut expected = vec![format!("{b} is text"), format!("--x={a}"), "--".to_owned(), a.clone()];
            expected.extend(items.iter().cloned());
            expected.push(format!("{a}{b}"));
            prop_assert_eq!(filled.unwrap(), expected);
        }
    }

    /// FAULTS 42: the server is the declared one, and a value is one segment.
    #[test]
    fn a_value_is_one_segment_of_a_url(a in value(), b in value()) {
        let mut backing = http("${BASE}/rates/{a}/to-{b}");
        backing.query = vec![("q".to_owned(), template("{b}"))];
        let env = |name: &str| (name == "BASE").then(|| "http://u:p@127.0.0.1:8080/v1".to_owned());
        match send(&backing, &json!({"a": a, "b": b})) {
            Err(refused) => {
                prop_assert_eq!(&refused[0].path, "/a");
                prop_assert!(matches!(a.as_str(), "" | "." | ".."), "{:?}", a);
            }
            Ok(request) => {
                let url = request_url(&backing, &request, &env).unwrap();
                prop_assert_eq!(&url[..url::Position::BeforePath], "http://u:p@127.0.0.1:8080");
                let segments: Vec<String> = url.path_segments().unwrap().map(decoded).collect();
                let to = format!("to-{b}");
                prop_assert_eq!(segments, ["v1", "rates", &a, &to]);
                let query: Vec<_> = url.query_pairs().into_owned().collect();
                prop_assert_eq!(query, [("q".to_owned(), b)]);
                prop_assert_eq!(url.fragment(), None);
            }
        }
    }

    /// FAULTS 43: a header is one line of visible characters.
    #[test]
    fn a_header_is_one_line(a in value()) {
        let mut backing = http("http://h/");
        backing.headers = vec![("x-a".to_owned(), template("v {a}"))];
        let visible = a.chars().all(|c| c == '\t' || (' '..='~').contains(&c));
        match send(&backing, &json!({"a": a})) {
            Err(refused) => prop_assert!(!visible && refused.len() == 1),
            Ok(request) => {
                prop_assert!(visible);
                prop_assert_eq!(&request.headers[0].1.0, &[Piece::Text(format!("v {a}"))]);
            }
        }
    }
}

fn decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment)
        .decode_utf8()
        .unwrap()
        .into_owned()
}

/// FAULTS 36.
#[test]
fn a_string_that_begins_with_a_dash_is_no_option() {
    for value in ["-", "--upload-pack=x", "-oProxyCommand=x"] {
        let input = json!({"x": value, "empty": "", "list": ["a", value]});
        for refused in ["{x}", "{empty}{x}", "{x}.txt"] {
            assert!(argv(&[refused], &input).is_err(), "{refused}");
            assert!(argv(&["--", refused], &input).is_ok(), "{refused}");
        }
        assert!(argv(&["--flag={x}"], &input).is_ok());
        let refused = messages(argv(&["{list...}"], &input).unwrap_err());
        assert_eq!(
            refused,
            ["/list/1: must not begin with `-`, which the program would take for an option"]
        );
    }
    assert_eq!(argv(&["{n}"], &json!({"n": -5})).unwrap(), ["-5"]);
}

/// FAULTS 10: other values come as their JSON, digits kept.
#[test]
fn what_is_no_string_comes_as_json() {
    let input = Input::parse(
        r#"{"n":12345678901234567890123,"f":1.0,"o":{"k": [1,null]},"b":true,"z":null}"#,
    )
    .unwrap();
    let backing = command(&[
        "{n}", "{f}", "{o}", "{o.k}", "{b}", "{z}", "{z?}", "{o.k...}",
    ]);
    let Ok(Some(Invocation::Command(filled))) =
        invocation(&tool_with_backing(Backing::Command(backing)), &input)
    else {
        panic!()
    };
    let expected = [
        "12345678901234567890123",
        "1.0",
        r#"{"k": [1,null]}"#,
        "[1,null]",
        "true",
        "null",
        "1",
        "null",
    ];
    assert_eq!(filled.argv[1..], expected);
}

/// FAULTS 39, 40.
#[test]
fn what_the_system_would_refuse_is_refused_before() {
    let input = |bytes: usize| json!({"x": "x".repeat(bytes)});
    assert!(argv(&["{x}"], &input(131_071)).is_ok());
    let refused = messages(argv(&["{x}"], &input(131_072)).unwrap_err());
    assert!(
        refused[0].starts_with("/x: is too long") && refused[0].contains("stdin"),
        "{refused:?}"
    );
    let list = json!({"list": vec!["x".repeat(131_000); 17]});
    assert!(messages(argv(&["{list...}"], &list).unwrap_err())[0].contains("together"));
    let mut backing = command(&[]);
    backing.env = vec![("V".to_owned(), template("{x}"))];
    backing.stdin = Stdin::Template(template("{x}"));
    assert!(run(backing.clone(), &input(131_069)).is_ok());
    assert_eq!(run(backing.clone(), &input(131_070)).unwrap_err().len(), 1);
    let refused = messages(run(backing, &json!({"x": "a\0b"})).unwrap_err());
    assert_eq!(
        refused,
        ["/x: holds a NUL character, which no environment variable can"]
    );
}

#[test]
fn missing_values_are_left_out_or_refused() {
    let mut backing = command(&["{a?}", "--b={b?}", "{c?}x", "{list?...}"]);
    backing.env = vec![
        ("A".to_owned(), template("{a?}")),
        ("C".to_owned(), template("{c}")),
    ];
    backing.stdin = Stdin::Template(template("<{c}>"));
    let filled = run(backing, &json!({"c": "c"})).unwrap();
    assert_eq!(filled.argv, ["prog", "cx"]);
    assert_eq!(filled.env.len(), 1);
    assert!(matches!(filled.stdin, StdinDraft::Text(text) if text == "<c>"));
    let refused = messages(
        argv(
            &["{a.b}", "{c}", "{d...}", "{e...}"],
            &json!({"a": 1, "d": 3}),
        )
        .unwrap_err(),
    );
    assert_eq!(
        refused,
        [
            "/a/b: is required",
            "/c: is required",
            "/d: must be an array",
            "/e: is required"
        ]
    );
}

/// FAULTS 44: values are put into the tree of a body.
#[test]
fn a_body_keeps_types_and_digits() {
    let object = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(key, text)| ((*key).to_owned(), BodyTemplate::Template(template(text))));
        BodyTemplate::Object(pairs.collect())
    };
    let mut backing = http("http://h/");
    backing.body = Body::Json(BodyTemplate::Array(vec![
        BodyTemplate::Literal(json!(1)),
        object(&[
            ("n", "{n}"),
            ("out", "{none?}"),
            ("s", "n={n} {s} ${TOKEN}"),
            ("z", "{z?}"),
        ]),
    ]));
    let input =
        Input::parse(r#"{"n":1.50,"s":"\"},\"admin\":true ${TOKEN} {n}","z":null}"#).unwrap();
    let Ok(Some(Invocation::Http(request))) =
        invocation(&tool_with_backing(Backing::Http(backing)), &input)
    else {
        panic!()
    };
    let Some(JsonDraft::Array(items)) = request.body else {
        panic!()
    };
    let JsonDraft::Object(pairs) = &items[1] else {
        panic!()
    };
    let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["n", "s", "z"]);
    assert!(matches!(&pairs[0].1, JsonDraft::Raw(raw) if raw.get() == "1.50"));
    let JsonDraft::Text(text) = &pairs[1].1 else {
        panic!()
    };
    let token = Piece::Env {
        name: "TOKEN".to_owned(),
        default: None,
    };
    let literal = Piece::Text("n=1.50 \"},\"admin\":true ${TOKEN} {n} ".to_owned());
    assert_eq!(text.0, [literal, token]);
    assert!(matches!(&pairs[2].1, JsonDraft::Raw(raw) if raw.get() == "null"));
}

/// FAULTS 42, 96: what the environment says is checked too.
#[test]
fn an_address_is_the_declared_one() {
    let at = |url: &str, base: &str, x: &str| {
        let backing = http(url);
        let request =
            send(&backing, &json!({"x": x})).map_err(|refused| messages(refused).join("\n"))?;
        let env = |name: &str| (name == "BASE").then(|| base.to_owned());
        request_url(&backing, &request, &env)
            .map(String::from)
            .map_err(|fault| fault.to_string())
    };
    assert_eq!(
        at("${BASE}/{x}?q={x}", "https://h", "a/b").unwrap(),
        "https://h/a%2Fb?q=a%2Fb"
    );
    assert_eq!(at("http://h/a?q={x}", "", "").unwrap(), "http://h/a?q=");
    for (url, base, x) in [
        ("${BASE}{x}", "http://h", "evil"),
        ("${BASE}{x}", "http://h", ".evil.com"),
        ("${BASE}{x}", "http://h:80", "81"),
        ("${BASE}/{x}", "file:///etc", "passwd"),
        ("${BASE}/{x}", "no url", "x"),
        ("${NONE}/{x}", "", "x"),
        ("http://h/.{x}/a", "", "."),
        ("http://h/%2E{x}", "", "."),
        ("http://h/{x}/a", "", ""),
    ] {
        assert!(at(url, base, x).is_err(), "{url} {base} {x}");
    }
    let fault = AddressFault::MissingVariable("NONE".to_owned());
    assert_eq!(at("${NONE}/{x}", "", "x"), Err(fault.to_string()));
}
