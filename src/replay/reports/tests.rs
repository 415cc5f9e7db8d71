use crate::replay::case::{Difference, Kind};
use crate::replay::reports::diff;

fn shown(expected: &str, actual: &str) -> String {
    diff::text(&diff::lines(&Difference {
        kind: Kind::Result,
        path: String::new(),
        expected: Some(expected.to_owned()),
        actual: Some(actual.to_owned()),
    }))
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[test]
fn only_lines_that_differ_are_shown() {
    assert_eq!(shown(&text("a\nb\nc"), &text("a\nx\nc")), "  a\n- b\n+ x");
    assert_eq!(shown(&text("a"), &text("a\nb")), "  a\n+ b");
    assert_eq!(shown(&text(""), &text("b")), "- (empty)\n+ b");
    assert_eq!(shown("[1, 2]", "[1,\n3]"), "- [1, 2]\n+ [1,3]");
    let failed = r#"{"is_error":true,"content":"no"}"#;
    let ran = r#"{"is_error":false,"content":"no"}"#;
    assert_eq!(shown(ran, failed), "- (no error)\n+ (an error)");
}

/// FAULTS 45, 78: never much of it, and nothing that moves a cursor.
#[test]
fn what_is_shown_is_short_and_tame() {
    let long = |middle: &str| {
        text(&format!(
            "{}{middle}{}",
            "ü".repeat(5_000),
            "z".repeat(5_000)
        ))
    };
    let diff = shown(&long("one"), &long("two"));
    assert!(
        diff.contains("- …") && diff.contains("one") && diff.contains("two"),
        "{diff}"
    );
    assert!(
        diff.chars().count() < 600 && diff.contains("more characters"),
        "{diff}"
    );
    let lines = |word: &str| text(&format!("{word}\n").repeat(1_000));
    let diff = shown(&lines("a"), &lines("b"));
    assert_eq!(diff.lines().count(), 18, "{diff}");
    let diff = shown(&text("\u{1b}[2J\r\u{202e}"), &text("\u{7}"));
    assert_eq!(diff, "- \\x1b[2J\\r\\u202e\n+ \\x07");
}
