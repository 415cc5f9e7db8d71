//! Hostile values in every place that a value can go.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::check::fill::invocation::build_invocation;
use crate::json::Input;
use crate::testing::{sample_template, tool_with_backing};
use crate::types::{
    Backing, BodyTemplate, CommandBacking, CommandInvocation, CommandLimits, HttpBacking,
    HttpInvocation, HttpMethod, Invocation, Leftovers, PartialJson, ProblemDetail, RequestBody,
    Segment, StderrUse, StdinContent, StdinSource,
};
use crate::url::{RequestUrlError, build_request_url};

fn command_backing(arguments: &[&str]) -> CommandBacking {
    CommandBacking {
        program: "prog".to_owned(),
        arguments: arguments.iter().map(|text| sample_template(text)).collect(),
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::default(),
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    }
}

fn http_backing(url: &str) -> HttpBacking {
    HttpBacking {
        method: HttpMethod::Post,
        url: sample_template(url),
        allowed_hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: RequestBody::None,
        success_status: Vec::new(),
        select: None,
        max_redirects: 0,
        proxy: None,
    }
}

fn fill_command(
    backing: CommandBacking,
    input: &Value,
) -> Result<CommandInvocation, Vec<ProblemDetail>> {
    let input = Input::parse(&input.to_string()).unwrap();
    match build_invocation(&tool_with_backing(Backing::Command(backing)), &input)? {
        Some(Invocation::Command(command)) => Ok(command),
        other => panic!("{other:?}"),
    }
}

fn fill_request(
    backing: &HttpBacking,
    input: &Value,
) -> Result<HttpInvocation, Vec<ProblemDetail>> {
    let input = Input::parse(&input.to_string()).unwrap();
    match build_invocation(&tool_with_backing(Backing::Http(backing.clone())), &input)? {
        Some(Invocation::Http(request)) => Ok(*request),
        other => panic!("{other:?}"),
    }
}

fn fill_argv(arguments: &[&str], input: &Value) -> Result<Vec<String>, Vec<ProblemDetail>> {
    Ok(fill_command(command_backing(arguments), input)?
        .argv
        .iter()
        .skip(1)
        .map(str::to_owned)
        .collect())
}

fn detail_lines(details: Vec<ProblemDetail>) -> Vec<String> {
    details
        .into_iter()
        .map(|detail| format!("{}: {}", detail.path, detail.message))
        .collect()
}

/// 18 × 6 × 6 texts that shells, URLs, JSON, templates, option parsers or terminals could misread.
fn hostile_texts() -> impl Iterator<Item = String> {
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

fn hostile_text() -> impl Strategy<Value = String> {
    let corpus: Vec<String> = hostile_texts().collect();
    assert!(corpus.len() >= 500);
    prop_oneof![prop::sample::select(corpus), any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// An array of n items becomes n arguments, and no value is expanded twice.
    #[test]
    fn a_value_stays_within_one_argument(a in hostile_text(), b in hostile_text(), items in prop::collection::vec(hostile_text(), 0..4)) {
        let input = json!({"a": a, "b": b, "items": items});
        let filled = fill_argv(&["{b} is text", "--x={a}", "--", "<{a}>", "{items...}", "{none?}", "{a}{b}"], &input);
        let all = [&a, &b].into_iter().chain(&items);
        let is_option = |text: &str| text.starts_with('-');
        if is_option(&b) || is_option(&format!("{a}{b}")) || items.iter().any(|item| is_option(item)) {
            let refused = detail_lines(filled.unwrap_err());
            prop_assert!(refused.iter().all(|line| line.contains("must not start with `-`") || line.contains("NUL")));
        } else if all.clone().any(|text| text.contains('\0')) {
            prop_assert!(detail_lines(filled.unwrap_err()).iter().all(|line| line.contains("NUL")));
        } else {
            let mut expected = vec![format!("{b} is text"), format!("--x={a}"), "--".to_owned(), format!("<{a}>")];
            expected.extend(items.iter().cloned());
            expected.push(format!("{a}{b}"));
            prop_assert_eq!(filled.unwrap(), expected);
        }
    }

    /// The server is always the declared one, and a value is one path segment.
    #[test]
    fn a_value_stays_within_one_url_segment(a in hostile_text(), b in hostile_text()) {
        let mut backing = http_backing("${BASE}/rates/{a}/to-{b}");
        backing.query = vec![("q".to_owned(), sample_template("{b}"))];
        let env = |name: &str| (name == "BASE").then(|| "http://u:p@127.0.0.1:8080/v1".to_owned());
        match fill_request(&backing, &json!({"a": a, "b": b})) {
            Err(refused) => {
                let has_parent_part = |value: &str| value.split(['/', '\\']).any(|part| part == "..");
                let is_refused = match refused[0].path.as_str() {
                    "/a" => matches!(a.as_str(), "" | ".") || has_parent_part(&a),
                    _ => has_parent_part(&b),
                };
                prop_assert!(is_refused, "{:?} {:?}", a, b);
            }
            Ok(request) => {
                let url = build_request_url(&backing, &request, &env).unwrap();
                prop_assert_eq!(&url[..url::Position::BeforePath], "http://u:p@127.0.0.1:8080");
                let segments: Vec<String> = url.path_segments().unwrap().map(percent_decode).collect();
                let to = format!("to-{b}");
                prop_assert_eq!(segments, ["v1", "rates", &a, &to]);
                let query: Vec<_> = url.query_pairs().into_owned().collect();
                prop_assert_eq!(query, [("q".to_owned(), b)]);
                prop_assert_eq!(url.fragment(), None);
            }
        }
    }

    /// A header is a single line of visible characters.
    #[test]
    fn a_header_stays_on_one_line(a in hostile_text()) {
        let mut backing = http_backing("http://h/");
        backing.headers = vec![("x-a".to_owned(), sample_template("v {a}"))];
        let visible = a.chars().all(|c| c == '\t' || (' '..='~').contains(&c));
        match fill_request(&backing, &json!({"a": a})) {
            Err(refused) => prop_assert!(!visible && refused.len() == 1),
            Ok(request) => {
                prop_assert!(visible);
                prop_assert_eq!(&request.headers[0].1.0, &[Segment::Text(format!("v {a}"))]);
            }
        }
    }
}

fn percent_decode(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment)
        .decode_utf8()
        .unwrap()
        .into_owned()
}

/// For many programs `--` ends nothing, so it makes no difference; and to many, a negative number is an option, as in `kill -9 -1`.
#[test]
fn a_value_with_a_leading_dash_is_refused() {
    for value in [
        json!("-"),
        json!("--upload-pack=x"),
        json!("-oProxyCommand=x"),
        json!(-1),
        json!(-0.5),
    ] {
        let input = json!({"x": value, "empty": "", "list": ["a", value]});
        for refused in ["{x}", "{empty}{x}", "{x}.txt"] {
            assert!(fill_argv(&[refused], &input).is_err(), "{refused}");
            assert!(fill_argv(&["--", refused], &input).is_err(), "{refused}");
        }
        assert!(fill_argv(&["--flag={x}"], &input).is_ok());
        let refused = detail_lines(fill_argv(&["--", "{list...}"], &input).unwrap_err());
        assert_eq!(
            refused,
            ["/list/1: must not start with `-`, or the program could read it as an option"]
        );
    }
    assert_eq!(fill_argv(&["{n}"], &json!({"n": 5})).unwrap(), ["5"]);
}

/// In `{from}-{to}`, an empty `from` would make `to` an option.
#[test]
fn an_empty_value_does_not_make_the_text_after_it_an_option() {
    for (template, input) in [
        ("{from}-{to}", json!({"from": "", "to": "ofile"})),
        ("{from}{to}--x", json!({"from": "", "to": ""})),
    ] {
        let refused = detail_lines(fill_argv(&[template], &input).unwrap_err());
        assert!(
            refused[0].starts_with("/from: must not start with `-`"),
            "{refused:?}"
        );
    }
    let range = json!({"from": 1, "to": 2});
    assert_eq!(fill_argv(&["{from}-{to}"], &range).unwrap(), ["1-2"]);
    let empty = json!({"from": "", "to": "x"});
    assert_eq!(fill_argv(&["{from}.{to}"], &empty).unwrap(), [".x"]);
    assert_eq!(fill_argv(&["-k{from}-{to}"], &empty).unwrap(), ["-k-x"]);
}

/// `dashes` names values that the program takes for no option.
#[test]
fn a_leading_dash_is_handed_over_where_the_file_allows_it() {
    let mut backing = command_backing(&["{n}", "{list...}", "{a.b}.txt"]);
    backing.dashes = [&["n"] as &[&str], &["list"], &["a", "b"]]
        .map(|path| path.iter().map(|name| (*name).to_owned()).collect())
        .into();
    let input = json!({"n": -5, "list": ["-x", "y"], "a": {"b": "-"}});
    let filled = fill_command(backing.clone(), &input).unwrap();
    assert_eq!(filled.argv, ["prog", "-5", "-x", "y", "-.txt"]);
    backing.dashes.pop();
    let refused = detail_lines(fill_command(backing, &input).unwrap_err());
    assert_eq!(refused.len(), 1);
    assert!(refused[0].starts_with("/a/b: "), "{refused:?}");
}

/// `./` keeps a program from reading a path as an option, a variable, a host, a revision or a pattern.
#[test]
fn a_path_is_handed_over_as_nothing_but_a_path() {
    let fill = |argument: &str, input: &Value| {
        let mut tool = tool_with_backing(Backing::Command(command_backing(&[argument])));
        tool.paths = ["p", "q", "list"].map(|name| vec![name.to_owned()]).into();
        let input = Input::parse(&input.to_string()).unwrap();
        match build_invocation(&tool, &input)
            .map_err(detail_lines)
            .unwrap()
        {
            Some(Invocation::Command(command)) => {
                let arguments = command.argv.iter().skip(1);
                arguments.map(str::to_owned).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    for (value, argument) in [
        ("src/a", "src/a"),
        ("a b/c", "a b/c"),
        ("a.txt", "a.txt"),
        (".", "."),
        ("..", ".."),
        ("./x", "./x"),
        ("/srv/x", "/srv/x"),
        ("src/-x", "src/-x"),
        ("src/h:x", "src/h:x"),
        ("-", "./-"),
        ("-delete", "./-delete"),
        ("--files0-from=/abs", "./--files0-from=/abs"),
        ("A=1", "./A=1"),
        ("h:x", "./h:x"),
        ("http://h/x", "./http://h/x"),
        ("@x", "./@x"),
        ("+x", "./+x"),
        ("*", "./*"),
        (" x", "./ x"),
        ("touch x|", "./touch x|"),
        ("ü", "./ü"),
        (
            "a
b", "./a
b",
        ),
    ] {
        let input = json!({"p": value});
        assert_eq!(fill("{p}", &input), [argument]);
        assert_eq!(fill("--file={p}", &input), [format!("--file={argument}")]);
        assert_eq!(
            fill("HEAD:{p}.txt", &input),
            [format!("HEAD:{argument}.txt")]
        );
        assert_eq!(fill("docs/{p}", &input), [format!("docs/{value}")]);
    }
    let input = json!({"p": "-a", "q": "-b", "list": ["-x", "y"], "x": "v", "empty": ""});
    assert_eq!(fill("{list...}", &input), ["./-x", "y"]);
    assert_eq!(fill("{p}/{q}", &input), ["./-a/-b"]);
    assert_eq!(fill("{empty}{p}", &input), ["./-a"]);
    assert_eq!(fill("{x}/{p}", &input), ["v/-a"]);
}

/// `-delete`, `A=1` or `h:x` get `./` before them, so that a program can take them only for paths.
#[test]
fn a_path_in_a_variable_is_handed_over_as_nothing_but_a_path() {
    let mut backing = command_backing(&["x"]);
    backing.env = ["{p}", "a:{p}", "docs/{p}", "${BASE}/{p}", "{p}/${NAME}"]
        .map(|text| ("V".to_owned(), sample_template(text)))
        .into();
    backing.stdin = StdinSource::Template(sample_template("{p}"));
    let mut tool = tool_with_backing(Backing::Command(backing));
    tool.paths = vec![vec!["p".to_owned()]];
    let input = Input::parse(r#"{"p": "-x"}"#).unwrap();
    let Ok(Some(Invocation::Command(command))) = build_invocation(&tool, &input) else {
        panic!()
    };
    let values: Vec<String> = command
        .env
        .iter()
        .map(|(_, value)| value.to_string())
        .collect();
    assert_eq!(
        values,
        ["./-x", "a:./-x", "docs/-x", "${BASE}/-x", "./-x/${NAME}"]
    );
    assert!(matches!(command.stdin, StdinContent::Text(text) if &*text == "-x"));
}

/// Digits are kept verbatim.
#[test]
fn values_that_are_not_strings_are_passed_as_json() {
    let input = Input::parse(
        r#"{"n":12345678901234567890123,"f":1.0,"o":{"k": [1,null]},"b":true,"z":null}"#,
    )
    .unwrap();
    let backing = command_backing(&[
        "{n}", "{f}", "{o}", "{o.k}", "{b}", "{z}", "{z?}", "{o.k...}",
    ]);
    let Ok(Some(Invocation::Command(filled))) =
        build_invocation(&tool_with_backing(Backing::Command(backing)), &input)
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
    assert_eq!(filled.argv.iter().skip(1).collect::<Vec<_>>(), expected);
}

/// The model learns that a long text belongs in stdin.
#[test]
fn arguments_that_the_system_would_reject_are_rejected_first() {
    let input = |bytes: usize| json!({"x": "x".repeat(bytes)});
    assert!(fill_argv(&["{x}"], &input(131_071)).is_ok());
    let refused = detail_lines(fill_argv(&["{x}"], &input(131_072)).unwrap_err());
    assert!(
        refused[0].starts_with("/x: is too long") && refused[0].contains("stdin"),
        "{refused:?}"
    );
    let list = json!({"list": vec!["x".repeat(131_000); 17]});
    assert!(detail_lines(fill_argv(&["{list...}"], &list).unwrap_err())[0].contains("together"));
    let mut backing = command_backing(&[]);
    backing.env = vec![("V".to_owned(), sample_template("{x}"))];
    backing.stdin = StdinSource::Template(sample_template("{x}"));
    assert!(fill_command(backing.clone(), &input(131_069)).is_ok());
    assert_eq!(
        fill_command(backing.clone(), &input(131_070))
            .unwrap_err()
            .len(),
        1
    );
    let refused = detail_lines(fill_command(backing, &json!({"x": "a\0b"})).unwrap_err());
    assert_eq!(
        refused,
        ["/x: contains a NUL character, which an environment variable can't"]
    );
}

#[test]
fn missing_values_are_omitted_or_rejected() {
    let mut backing = command_backing(&["{a?}", "--b={b?}", "{c?}x", "{list?...}"]);
    backing.env = vec![
        ("A".to_owned(), sample_template("{a?}")),
        ("C".to_owned(), sample_template("{c}")),
    ];
    backing.stdin = StdinSource::Template(sample_template("<{c}>"));
    let filled = fill_command(backing, &json!({"c": "c"})).unwrap();
    assert_eq!(filled.argv, ["prog", "cx"]);
    assert_eq!(filled.env.len(), 1);
    assert!(matches!(filled.stdin, StdinContent::Text(text) if &*text == "<c>"));
    let refused = detail_lines(
        fill_argv(
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

/// A form that is written as a text gets no more fields than its author wrote. Other texts are the author's.
#[test]
fn a_value_stays_one_value_in_a_form_that_is_a_text() {
    let filled = |content_type: &str| {
        let mut backing = http_backing("http://h/");
        backing.headers = vec![("content-type".to_owned(), sample_template(content_type))];
        let text = BodyTemplate::Template(sample_template("user={s}&key=${KEY}"));
        backing.body = RequestBody::Json(text);
        let tool = tool_with_backing(Backing::Http(backing));
        let input = Input::parse(r#"{"s":"a&admin=1 +é"}"#).unwrap();
        match build_invocation(&tool, &input) {
            Ok(Some(Invocation::Http(request))) => match request.body {
                Some(PartialJson::Text(text)) => text.to_string(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let form = "user=a%26admin%3D1%20%2B%C3%A9&key=${KEY}";
    assert_eq!(filled("application/x-www-form-urlencoded"), form);
    assert_eq!(
        filled("Application/X-WWW-Form-URLencoded; charset=utf-8"),
        form
    );
    assert_eq!(filled("text/plain"), "user=a&admin=1 +é&key=${KEY}");
}

/// Values are inserted into the tree of a body, not into its text.
#[test]
fn a_body_keeps_types_and_digits() {
    let object = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, text)| {
            (
                (*key).to_owned(),
                BodyTemplate::Template(sample_template(text)),
            )
        });
        BodyTemplate::Object(pairs.collect())
    };
    let mut backing = http_backing("http://h/");
    backing.body = RequestBody::Json(BodyTemplate::Array(vec![
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
        build_invocation(&tool_with_backing(Backing::Http(backing)), &input)
    else {
        panic!()
    };
    let Some(PartialJson::Array(items)) = request.body else {
        panic!()
    };
    let PartialJson::Object(pairs) = &items[1] else {
        panic!()
    };
    let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["n", "s", "z"]);
    assert!(matches!(&pairs[0].1, PartialJson::Raw(raw) if raw.get() == "1.50"));
    let PartialJson::Text(text) = &pairs[1].1 else {
        panic!()
    };
    let token = Segment::Env {
        name: "TOKEN".to_owned(),
        default: None,
    };
    let literal = Segment::Text("n=1.50 \"},\"admin\":true ${TOKEN} {n} ".to_owned());
    assert_eq!(text.0, [literal, token]);
    assert!(matches!(&pairs[2].1, PartialJson::Raw(raw) if raw.get() == "null"));
}

/// Environment variables in a URL are checked too.
#[test]
fn a_url_keeps_its_declared_origin() {
    let at = |url: &str, base: &str, x: &str| {
        let backing = http_backing(url);
        let request = fill_request(&backing, &json!({"x": x}))
            .map_err(|refused| detail_lines(refused).join("\n"))?;
        let env = |name: &str| (name == "BASE").then(|| base.to_owned());
        build_request_url(&backing, &request, &env)
            .map(String::from)
            .map_err(|fault| fault.to_string())
    };
    assert_eq!(
        at("${BASE}/{x}?q={x}", "https://h", "a/b").unwrap(),
        "https://h/a%2Fb?q=a%2Fb"
    );
    assert_eq!(at("http://h/a?q={x}", "", "").unwrap(), "http://h/a?q=");
    assert_eq!(
        at("http://h/a?q={x}", "", "../b").unwrap(),
        "http://h/a?q=..%2Fb"
    );
    assert_eq!(
        at("http://h/{x}", "", "./a..b/...").unwrap(),
        "http://h/.%2Fa..b%2F..."
    );
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
        ("http://h/{x}${NONE:-.}/a", "", "."),
        ("http://h/{x}/a", "", "../admin"),
        ("http://h/{x}/a", "", "b\\..\\admin"),
        ("http://h/{x}/a", "", "b/.."),
    ] {
        assert!(at(url, base, x).is_err(), "{url} {base} {x}");
    }
    let fault = RequestUrlError::MissingVariable("NONE".to_owned());
    assert_eq!(at("${NONE}/{x}", "", "x"), Err(fault.to_string()));
}
