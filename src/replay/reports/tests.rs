use crate::replay::case::{CaseDifference, DifferenceKind};
use crate::replay::reports::diff;

fn diff_text(expected: &str, actual: &str) -> String {
    diff::join_lines(&diff::diff_lines(&CaseDifference {
        kind: DifferenceKind::Result,
        path: String::new(),
        expected: Some(expected.to_owned()),
        actual: Some(actual.to_owned()),
    }))
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[test]
fn only_lines_that_differ_are_shown() {
    assert_eq!(
        diff_text(&json_string("a\nb\nc"), &json_string("a\nx\nc")),
        "  a\n- b\n+ x"
    );
    assert_eq!(
        diff_text(&json_string("a"), &json_string("a\nb")),
        "  a\n+ b"
    );
    assert_eq!(
        diff_text(&json_string(""), &json_string("b")),
        "- (empty)\n+ b"
    );
    assert_eq!(diff_text("[1, 2]", "[1,\n3]"), "- [1, 2]\n+ [1,3]");
    let failed = r#"{"is_error":true,"content":"no"}"#;
    let ran = r#"{"is_error":false,"content":"no"}"#;
    assert_eq!(diff_text(ran, failed), "- (no error)\n+ (an error)");
}

/// Each change is shown by itself, with the line before it.
#[test]
fn changes_that_are_far_apart_are_shown_without_what_is_between() {
    let text = |change: &dyn Fn(usize) -> Option<&'static str>| {
        let line = |number| change(number).map_or(format!("line {number}"), str::to_owned);
        json_string(&(0..60).map(line).collect::<Vec<String>>().join("\n"))
    };
    let (old, new) = (
        text(&|_| None),
        text(&|number| match number {
            10 => Some("changed"),
            50 => Some("changed, too"),
            _ => None,
        }),
    );
    assert_eq!(
        diff_text(&old, &new),
        "  line 9\n- line 10\n+ changed\n  line 49\n- line 50\n+ changed, too"
    );
    let (short, long) = (json_string("a\nb\nc\nd"), json_string("a\nx\nb\nc\nd\ny"));
    assert_eq!(diff_text(&short, &long), "  a\n+ x\n  d\n+ y");
}

/// A diff of any value is short, and can't move the cursor.
#[test]
fn a_diff_is_short_and_escaped() {
    let long = |middle: &str| {
        json_string(&format!(
            "{}{middle}{}",
            "ü".repeat(5_000),
            "z".repeat(5_000)
        ))
    };
    let diff = diff_text(&long("one"), &long("two"));
    assert!(
        diff.contains("- …") && diff.contains("one") && diff.contains("two"),
        "{diff}"
    );
    assert!(
        diff.chars().count() < 600 && diff.contains("more characters"),
        "{diff}"
    );
    let lines = |word: &str| json_string(&format!("{word}\n").repeat(1_000));
    let diff = diff_text(&lines("a"), &lines("b"));
    assert_eq!(diff.lines().count(), 18, "{diff}");
    let diff = diff_text(&json_string("\u{1b}[2J\r\u{202e}"), &json_string("\u{7}"));
    assert_eq!(diff, "- \\x1b[2J\\r\\u202e\n+ \\x07");
}
