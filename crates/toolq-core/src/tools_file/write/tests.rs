use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools_file::write::starter_tools_file;
use crate::transcript::ToolDeclaration;

fn tool(name: &str, description: &str, schema: &str) -> ToolDeclaration {
    ToolDeclaration {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: RawValue::from_string(schema.to_owned()).unwrap(),
        read_only: true,
        idempotent: false,
    }
}

fn load(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the description of a tool. An empty one isn't written.
fn description<'l>(loaded: &'l Value, name: &str) -> &'l str {
    let description = loaded["tools"][name].get("description");
    description.map_or("", |description| description.as_str().unwrap())
}

#[test]
fn the_file_is_readable() {
    let schema = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"Where.\n- relative","default":"no","enum":["a: b",""],"minimum":-1.50,"x":[],"y":[[1],{"z":null}]}}}"#;
    insta::assert_snapshot!(starter_tools_file(&[
        tool("read_file", "Reads #1: a file.", schema),
        tool("b", "", "{}")
    ]));
}

proptest! {
    /// Any name, description and schema that an API accepts must survive.
    #[test]
    fn declarations_survive_writing_and_loading(name in ".{1,40}", text in "(.|\n|\t| |\r|\u{85}|\u{2028}|\"|\\\\|: |#|- ){0,60}", key in ".{0,1200}") {
        let schema = serde_json::json!({"type": "object", "properties": {key: {"description": text}, "a": {"enum": [text, 1.5, -3, null, true, [], {}]}}});
        let written = starter_tools_file(&[tool(&name, &text, &schema.to_string())]);
        let loaded = load(&written);
        prop_assert_eq!(description(&loaded, &name), &*text, "{}", written);
        prop_assert_eq!(&loaded["tools"][&name]["input_schema"], &schema, "{}", written);
        prop_assert_eq!(&loaded["tools"][&name]["effect"], "read");
    }
}

/// A float would round them: 2^64 + 1 has no float of its own.
#[test]
fn integers_beyond_64_bits_keep_their_digits() {
    let digits = [
        "18446744073709551617",
        "-9223372036854775809",
        "340282366920938463463374607431768211455",
    ];
    let schema = format!(
        r#"{{"properties":{{"n":{{"enum":[{}]}}}}}}"#,
        digits.join(",")
    );
    let written = starter_tools_file(&[tool("a", "", &schema)]);
    for digits in digits {
        assert!(written.contains(&format!("- {digits}\n")), "{written}");
    }
}

#[test]
fn a_schema_nested_too_deeply_is_left_out() {
    let schema = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let written = starter_tools_file(&[tool("a", "b", &schema)]);
    assert_eq!(load(&written)["tools"]["a"]["input_schema"], Value::Null);
}

#[test]
fn yaml_keywords_stay_text() {
    for word in [
        "true",
        "No",
        "NULL",
        "~",
        "012",
        "1e3",
        "0x1F",
        ".inf",
        ".NaN",
        "-",
        "?",
        "=",
        "<<",
        "y",
        "1_000",
        "2001-01-01",
        "12:30",
        "&a",
        "*a",
        "!t",
        "%x",
        "@",
        "`",
        "'",
        "a: b",
        "a #b",
        "{a}",
        "[a",
        "",
        " ",
        "nan",
        "Infinity",
        "inf",
        "e5",
        "_1",
    ] {
        let schema = serde_json::json!({"enum": [word], word: word, "numbers": [1e22, 1e300, 1.0, -0.0, 5e-324, u64::MAX, i64::MIN]});
        let loaded = load(&starter_tools_file(&[tool(
            word,
            word,
            &schema.to_string(),
        )]));
        assert_eq!(description(&loaded, word), word);
        assert_eq!(loaded["tools"][word]["input_schema"], schema, "{word}");
    }
}
