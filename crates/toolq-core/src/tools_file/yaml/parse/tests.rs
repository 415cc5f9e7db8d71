//! What of YAML is read, and how every problem is reported.

use super::*;
use crate::linear_time::assert_linear_time;

fn problems(text: &str) -> Vec<(String, String)> {
    let problems = parse_yaml(text).expect_err(text);
    let quote = |span: Span| text[span.start..span.start + span.len].to_owned();
    problems
        .iter()
        .map(|problem| (problem.message.clone(), quote(problem.span)))
        .collect()
}

/// YAML 1.1 would read most of these as booleans, octal numbers or times.
#[test]
fn yaml_1_1_scalars_stay_text() {
    let node = parse_yaml("[no, on, 012, 1_000, 12:30, 1e3, 0o17, true, ~]").unwrap();
    let json = node.to_json().to_string();
    assert_eq!(
        json,
        r#"["no","on","012","1_000","12:30",1000.0,15,true,null]"#
    );
    let node = parse_yaml("[0b101, 0O17, 0X1F, -0x1F, +0o17, 0x1F, .5, -1., +2]").unwrap();
    let json = node.to_json().to_string();
    assert_eq!(
        json,
        r#"["0b101","0O17","0X1F","-0x1F","+0o17",31,0.5,-1.0,2]"#
    );
}

#[test]
fn spans_are_in_bytes() {
    let text = "é: {b: [ü, x]}\nc: |\n  two\n  lines\n";
    let tree = parse_yaml(text).unwrap();
    let text_at = |pointer: &str| {
        let span = tree.span_at(&[], pointer);
        &text[span.start..span.start + span.len]
    };
    assert_eq!(text_at("/é/b/1"), "x");
    assert_eq!(text_at("/é/b/7"), "b");
    assert_eq!(text_at("/é/b"), "b");
    assert_eq!(text_at("/c"), "two\n  lines\n");
}

/// Otherwise the last of several equal keys would silently win.
#[test]
fn every_duplicate_key_is_found() {
    let found = problems("a: 1\nb:\n  c: {d: 1, d: 2}\na: 3\n1: x\n");
    let keys: Vec<&str> = found.iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys, ["d", "a", "1"]);
}

/// Tags, merge keys, several documents, tabs, anchors that contain themselves, and aliases that expand
/// exponentially.
#[test]
fn unsupported_yaml_is_rejected_at_its_position() {
    let bomb = (1..10).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
        let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
        text + &format!("a{n}: &a{n} [{aliases}]\n")
    });
    let wide = format!("a: &a x\nb: [{}]", "*a, ".repeat(2_000));
    let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
    assert!(parse_yaml(&deep).is_ok());
    let bracket_bomb = "[".repeat(100_000);
    for (text, expected) in [
        (bomb.as_str(), "aliases expand"),
        (&wide, "aliases expand"),
        (&bracket_bomb, "nested deeper than 64 levels"),
        ("a: &a [*a]", "an anchor contains itself"),
        ("a: *b", "unknown anchor"),
        ("a: !!python/object:os.system x", "tags are not supported"),
        ("a: !!str x", "tags are not supported"),
        ("a: !!binary /w==", "tags are not supported"),
        ("a: !!binary \"x y\"", "tags are not supported"),
        ("a: !include other.yaml", "tags are not supported"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "merge keys"),
        ("a: 1\n---\nb: 2", "second document"),
        ("a:\n\tb: 1", "tab"),
        ("a: {b: 1\n", "unclosed"),
        ("a: .inf", "can't represent this number"),
        ("a: \u{1}", "unexpected character"),
        ("? [a, b]\n: c", "must be text, not a list"),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0.contains(expected), "{found:?}");
    }
    assert_eq!(problems("a: !!str x")[0].1, "!!str");
    assert_eq!(problems("ab: {b: 1\n")[0].1, "");
}

#[test]
fn a_key_that_is_too_long_is_an_error() {
    for text in ["{key}: 1\n", "tools: {a: {b: 1, {key}: {c: 1}}}\n"] {
        let found = problems(&text.replace("{key}", &"k".repeat(1_025)));
        assert_eq!(found.len(), 1, "{found:?}");
    }
    assert!(parse_yaml(&format!("{}: 1\n", "k".repeat(1_000))).is_ok());
}

/// 64 levels fit on the 8 MiB stack of a main thread, even in an unoptimized build.
#[test]
fn too_deep_nesting_is_rejected() {
    let nested = |levels: usize| format!("{}x{}", "{a: ".repeat(levels), "}".repeat(levels));
    let check = move || {
        assert!(parse_yaml(&nested(63)).is_ok());
        let found = problems(&nested(65));
        assert_eq!(found[0].0, "nested deeper than 64 levels");
    };
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    thread.spawn(check).unwrap().join().unwrap();
}

#[test]
fn a_tag_is_refused_wherever_it_stands() {
    for value in [
        "!!int \"1\"",
        "!!int\n  \"1\"",
        "!!str |\n  1",
        "! |\n  1",
        "!!binary |\n  aGVsbG8=",
        "!!float # c\n  \"1.5\"",
        "!!null\n  \"\"",
        "!!map\n  b: 1",
        "!!seq\n  - 1",
        "!<tag:yaml.org,2002:int> \"1\"",
        "[!!str 1]",
        "&x !!str 1",
        "{!!str 1: 1}",
    ] {
        let problems = parse_yaml(&format!("a: {value}\n")).expect_err(value);
        assert_eq!(problems[0].message, "tags are not supported", "{value}");
    }
    // The closing bracket may stand where strict YAML has it indented.
    let problems = parse_yaml("a:\n  b: [\n  1\n  ]\n  c: !!str 1\n").expect_err("tagged");
    assert_eq!(problems[0].message, "tags are not supported");
    for text in ["a: hi!", "a: \"!!int 1\"", "a: b !c", "a: |\n  !x"] {
        assert!(parse_yaml(text).is_ok(), "{text}");
    }
}

#[test]
fn the_error_of_a_tag_points_at_the_tag() {
    for (text, tags) in [
        ("a: !foo bar", &["!foo"][..]),
        (
            "é: !<tag:x,2002:a>\n  - !b 1\n  - ! c",
            &["!<tag:x,2002:a>", "!b", "!"],
        ),
        ("a: &x !!map\n  b: 1", &["!!map"]),
    ] {
        let problems = parse_yaml(text).expect_err(text);
        let spans = problems.iter().map(|problem| problem.span);
        let found: Vec<&str> = spans.map(|span| &text[span.start..][..span.len]).collect();
        assert_eq!(found, tags, "{text}");
    }
}

/// It took minutes when the text before each value was searched for a tag.
#[test]
fn a_long_line_without_spaces_is_read_in_linear_time() {
    assert_linear_time("a line", 500, |count| {
        let entries: Vec<String> = (0..count).map(|n| format!("\"k{n}\":1e3")).collect();
        assert!(parse_yaml(&format!("{{{}}}", entries.join(","))).is_ok());
    });
}

/// A wrong digit in an `enum`, `const` or `default` would be a different value.
#[test]
fn integers_that_would_lose_digits_are_refused() {
    for integer in [
        "18446744073709551616",
        "18446744073709551617",
        "-9223372036854775809",
        "+12345678901234567890123",
    ] {
        let problems = parse_yaml(&format!("a: [{integer}]")).expect_err(integer);
        let span = problems[0].span;
        assert_eq!((span.start, span.len), (4, integer.len()), "{integer}");
    }
    for number in [
        "18446744073709551615",
        "-9223372036854775808",
        "10000000000000000000000",
        "1.2345678901234567890123",
        "1.2345678901234568e22",
        "\"12345678901234567890123\"",
    ] {
        assert!(parse_yaml(&format!("a: [{number}]")).is_ok(), "{number}");
    }
}

#[test]
fn a_tab_after_spaces_is_no_indentation() {
    for (text, tab) in [
        ("a:\n  \tb: 1\n", 5),
        ("a:\n \t b: 1\n    c: 2\n", 4),
        ("a:\n  \t- b\n", 5),
        ("\ta: 1\n", 0),
        ("- \tb: 1\n", 2),
        ("-\tb: 1\n", 1),
        ("a: \"x\"\nb:\n  \t\"c\": |\n      d\n", 12),
        ("a:\n  \t&x b: *x\n", 5),
    ] {
        let problems = parse_yaml(text).expect_err(text);
        assert_eq!(problems[0].message, "a tab can't be indentation", "{text}");
        assert_eq!((problems[0].span.start, problems.len()), (tab, 1), "{text}");
    }
}

/// Every tab that separates, or that belongs to a text, is valid.
#[test]
fn other_tabs_are_accepted() {
    for (text, json) in [
        ("a:\tb\n", r#"{"a":"b"}"#),
        ("a:\n  \tb\n", r#"{"a":"b"}"#),
        ("-\tb\n-\t[1]\n", r#"["b",[1]]"#),
        ("a: |\n  \tb\n", r#"{"a":"\tb\n"}"#),
        ("a: \"b\n  \tc\"\n", r#"{"a":"b c"}"#),
        ("a: 1 \t# c\n \t\nb: {c:\t2}\n", r#"{"a":1,"b":{"c":2}}"#),
        ("a:\n  {b: 1,\n  \tc: 2}\n", r#"{"a":{"b":1,"c":2}}"#),
    ] {
        assert_eq!(
            parse_yaml(text).expect(text).to_json().to_string(),
            json,
            "{text}"
        );
    }
}
