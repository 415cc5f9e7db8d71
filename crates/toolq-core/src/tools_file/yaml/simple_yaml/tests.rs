use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::tools_file::yaml::parse::parse_checked_yaml;

use super::*;

/// Says what differs between the two parsers.
fn check_same(text: &str) -> Result<bool, TestCaseError> {
    let Some(simple) = parse_simple_yaml(text) else {
        return Ok(false);
    };
    prop_assert_eq!(Ok(simple), parse_checked_yaml(text), "{:?}", text);
    Ok(true)
}

#[test]
fn files_of_tools_are_simple() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["tools.yaml", "benches/tools.yaml"] {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let text = text.replace("&note", "").replace("*note", "{}");
        assert!(check_same(&text).unwrap(), "{name}");
    }
}

/// What could be a text, a number or something else.
const SCALARS: &[&str] = &[
    "",
    "~",
    "null",
    "Null",
    "NULL",
    "true",
    "True",
    "no",
    "on",
    "012",
    "0",
    "00",
    "-0",
    "-1",
    "+1",
    "1_000",
    "12:30",
    "1e3",
    "0o17",
    "0x1f",
    "30s",
    "10ms",
    "64KiB",
    "1.5",
    "1.",
    ".5",
    "-.5",
    "-1.50",
    "3.00",
    "inf",
    ".inf",
    "-.INF",
    "nan",
    ".nan",
    "NaN",
    "--",
    "-x",
    "-",
    "- x",
    "+",
    ".",
    "..",
    "./a",
    ".a",
    "2026-11-24",
    "1d",
    "1f",
    "9223372036854775807",
    "18446744073709551617",
    "999999999999999",
    "1 2",
    "3/s",
    "10/s",
    "5%",
    "a b",
    "a_b",
    "/x",
    "é",
    "\"1\"",
    "'~'",
    "'a''b'",
    "\"\\u00e9\\n\"",
    "infinity",
    "-infinity",
    "-inf",
    "-nan",
    "|\n  a\n  b\n",
    ">-\n  a\n  b\n",
    "a: b",
    "{a: }",
    "[]",
    "{}",
    "[a, ]",
    "{a}",
    "{\"a\":1}",
    "<<",
    "!x y",
    "&a b",
    "*a",
    "# c",
    "a # c",
    "a#c",
    "0.1",
    "100.000000000000001",
    "1i",
    "1B",
    "1h",
    "1MM",
    "7 days",
    "0/0",
    "1E",
    "0b1",
    "0s",
    "00s",
    "01.5",
    "1.5s",
];

#[test]
fn scalars_mean_the_same_to_both_parsers() {
    let mut simple = 0;
    for scalar in SCALARS {
        for text in [
            format!("k: {scalar}"),
            format!("[{scalar}]"),
            format!("- {scalar}\n- x\n"),
            (*scalar).to_owned(),
        ] {
            simple += usize::from(check_same(&text).unwrap());
        }
    }
    assert!(simple > 150, "{simple}");
}

/// Parts of YAML, which may fit together or not.
fn arbitrary_yaml() -> impl Strategy<Value = String> {
    let parts = [
        "a",
        "b:",
        "c: ",
        ": ",
        "\n",
        "\n  ",
        "\n ",
        "\n    ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        ",",
        "\"x\"",
        "'y'",
        "1",
        "-2",
        "0.5",
        "~",
        "true",
        "null",
        "é",
        " ",
        "  ",
        "\t",
        "# d\n",
        "|",
        ">",
        "|-\n  ",
        "---\n",
        "...\n",
        "&e ",
        "*e",
        "!f ",
        "<<: ",
        "? ",
        "%",
        "@",
        "5s",
        "key: value\n",
        "key:\n",
        "  inner: [1, two, \"three\"]\n",
        "\r\n",
        "\u{85}",
        "\\",
        "\"",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 1..14)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_parsers_read_the_same(text in arbitrary_yaml()) {
        check_same(&text)?;
    }
}
