use proptest::prelude::*;
use serde_json::json;

use crate::json_schema::library::SchemaLibrary;
use crate::json_schema::validation_options::validation_options;
use crate::types::FormatPolicy;

use super::*;

fn compiles(pattern: &str) -> bool {
    let options = validation_options(SchemaLibrary::default(), FormatPolicy::Annotate);
    options
        .build(&json!({"allOf": [{"pattern": pattern}]}))
        .is_ok()
}

#[test]
fn patterns_of_tools_are_simple() {
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
        assert!(is_simple_pattern(pattern), "{pattern}");
    }
}

/// Some of these are valid, but not evidently.
#[test]
fn other_patterns_are_not_simple() {
    for pattern in [
        "",
        "(",
        ")",
        "[",
        "a{2,1}",
        "a**",
        "a{2}{3}",
        "(?=a)",
        r"\1",
        r"\p{L}",
        "[z-a]",
        "[]",
        "[^]",
        "[a-]b]{",
        "a|",
        "(|a)",
        "*",
        "x{0,999999}",
        "(a{1000}){1000}",
        "[a&&b]",
        "[--a]",
        r"\b",
        r"\cA",
        "é",
        "(?i)a",
        "[^x]{300}",
    ] {
        assert!(!is_simple_pattern(pattern), "{pattern}");
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
    fn every_simple_pattern_compiles(pattern in arbitrary_pattern()) {
        prop_assert!(!is_simple_pattern(&pattern) || compiles(&pattern), "{}", pattern);
    }
}

/// The bounds of the size hold where they are almost reached, for the largest atoms.
#[test]
fn the_largest_simple_patterns_compile() {
    for atom in [
        r"\S",
        r"\W",
        r"[^\sa]",
        r"[^\W\D]",
        ".",
        "[^a]",
        r"\s",
        r"[\s\S]",
        // A class with as many ranges as one can have here.
        r"[^\s!#%'+\-/13579;=?ACEGIKMOQSUWY\[\]_acegikmoqsuwy\{\}]",
        r"[\s!#%'+\-/13579;=?ACEGIKMOQSUWY\[\]_acegikmoqsuwy\{\}]",
        "[acegikmoqsuwy]",
        "a",
        "(a?|b)",
        "(.{0,9}x*|y+)",
        "(a|b)",
    ] {
        let pattern = |count: usize| format!("{atom}{{0,{count}}}");
        let mut count = 1;
        while is_simple_pattern(&pattern(count + 1)) {
            count += 1;
        }
        assert!(compiles(&pattern(count)), "{}", pattern(count));
    }
}
