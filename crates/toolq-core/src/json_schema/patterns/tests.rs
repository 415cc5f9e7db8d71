use proptest::prelude::*;
use serde_json::json;

use crate::json_schema::library::SchemaLibrary;
use crate::json_schema::library::validation_options;

use super::*;

fn is_small(pattern: &str) -> bool {
    PatternSyntax::parse(pattern).is_some_and(|syntax| syntax.is_small())
}

fn compiles(pattern: &str) -> bool {
    let options = validation_options(SchemaLibrary::default());
    options
        .build(&json!({"allOf": [{"pattern": pattern}]}))
        .is_ok()
}

#[test]
fn patterns_of_tools_are_small() {
    for pattern in [
        "^[a-z][a-z0-9_-]{0,62}$",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        r"^notes/[a-z]+-[0-9]+\.md$",
        "^(open|closed|draft)(,(open|closed|draft))*$",
        r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$",
        r"^(?:\d+|\w*)/?$",
        "^.+$",
        "^.{1,255}$",
        "^[^/]{1,200}$",
        r"^[^\s@]{1,64}@[^\s@]{1,128}$",
        r"^[^\n\r\t]+\n$",
    ] {
        assert!(is_small(pattern), "{pattern}");
    }
    for pattern in ["(a{1000}){1000}", "[^x]{3000}", "x{0,999999}", r"\p{L}"] {
        assert!(!is_small(pattern), "{pattern}");
    }
}

/// What Rust reads in another way, or not at all, isn't judged.
#[test]
fn patterns_with_another_meaning_have_no_syntax() {
    for pattern in [
        "(",
        "[",
        "(?=a)",
        r"\1",
        "[z-a]",
        "[]",
        "[^]",
        "[]a]",
        "[^]a]",
        "[a[b]c]",
        "[a&&b]",
        "[--a]",
        r"\cA",
        "(?i)a",
        "(?P<n>a)",
        r"\Aa",
        r"\<a",
        r"\x41",
        "[[:alpha:]]",
    ] {
        assert!(PatternSyntax::parse(pattern).is_none(), "{pattern}");
    }
}

/// Parts of patterns, which may fit together or not.
fn arbitrary_pattern() -> impl Strategy<Value = String> {
    let parts = [
        "a",
        "Z",
        "0",
        " ",
        "-",
        ",",
        "/",
        "@",
        "~",
        "&",
        "<",
        "^",
        "$",
        ".",
        "[a-z]",
        "[^a]",
        r"[^\s@]",
        r"[\w.-]",
        r"[\S\D]",
        r"[^\n\t]",
        r"\r",
        "[a-",
        "]",
        "[",
        "(",
        "(?:",
        ")",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{0,9}",
        "{3,}",
        "{40}",
        "{400}",
        "{",
        "}",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\.",
        r"\\",
        r"\-",
        r"\/",
        "[a-zA-Z0-9_-]",
        "[(]",
        "[$.*]",
        r"[^\W\D]",
        "9-",
        "[0-9-",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 1..9)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_small_pattern_compiles(pattern in arbitrary_pattern()) {
        prop_assert!(!is_small(&pattern) || compiles(&pattern), "{}", pattern);
    }
}

/// The bounds of the size hold where they are almost reached, for the largest parts.
#[test]
fn the_largest_small_patterns_compile() {
    for part in [
        r"\S",
        r"\W",
        r"[^\sa]",
        r"[^\W\D]",
        ".",
        "[^a]",
        r"\D",
        r"\s",
        r"[\s\S]",
        // A class with as many ranges as one can have.
        r"[^\s!#%'+\-/13579;=?ACEGIKMOQSUWY\[\]_acegikmoqsuwy\{\}]",
        r"[\s!#%'+\-/13579;=?ACEGIKMOQSUWY\[\]_acegikmoqsuwy\{\}]",
        "[acegikmoqsuwy]",
        "[^é]",
        "é",
        "a",
        "(a?|b)",
        "(.{0,9}x*|y+)",
        "(a|b)",
    ] {
        let pattern = |count: usize| format!("{part}{{0,{count}}}");
        let mut count = 1;
        while is_small(&pattern(count + 1)) {
            count += 1;
        }
        assert!(compiles(&pattern(count)), "{}", pattern(count));
    }
}

#[test]
fn a_pattern_excludes_a_dash_if_every_alternative_does() {
    for (pattern, may) in [
        ("^[a-z]+$", false),
        ("^[a-z-]+$", true),
        ("^[a\\-z]", true),
        ("^[+-9]", true),
        ("^[^-]", false),
        ("^[^-].*$", false),
        ("^[^a]", true),
        ("^[a-z]*$", false),
        ("^[a-z]*?[0-9]$", false),
        ("^(?:a|b)?x", false),
        ("^[a-z]*-", true),
        ("^[a-z]*", true),
        ("^[a-z]{0,2}", true),
        ("^[a-z]{0,2}$", false),
        ("^[a-z]{0,2}-?$", true),
        ("^a|b", true),
        ("^a|^b", false),
        ("^(a|b)$", false),
        ("^(?:a|-b)$", true),
        ("^(a|b)?", true),
        ("^v[0-9]", false),
        ("^\\d+$", false),
        ("^\\S+$", true),
        ("^$|^x", false),
        ("^.", true),
        ("^-?[0-9]+$", true),
        ("x", true),
        ("", true),
    ] {
        let syntax = PatternSyntax::parse(pattern).unwrap();
        assert_eq!(syntax.may_begin_with_dash(), may, "{pattern}");
    }
}

#[test]
fn plain_patterns_are_recognized() {
    for (pattern, is_plain) in [
        ("^[a-z][a-z0-9_-]*$", true),
        ("^v[0-9]{1,3}\\.[0-9]+$", true),
        ("^(all|test)$", true),
        ("^v(?:1|2)$", true),
        ("^\\d+$", true),
        ("^all$|x", false),
        ("^(a)|x|(b)$", false),
        ("^[a-z]+", false),
        ("^[a-z=]+$", false),
        ("^[+-z]+$", false),
        ("^[^a]+$", false),
        ("^.+$", false),
        ("^a b$", false),
    ] {
        let syntax = PatternSyntax::parse(pattern).unwrap();
        assert_eq!(syntax.is_plain(), is_plain, "{pattern}");
    }
}
