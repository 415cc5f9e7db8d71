use std::fs;

use serde_json::json;

use super::*;

use crate::json_schema::schema::CompiledSchema;
use crate::json_schema::schema_errors::find_schema_errors;

#[test]
fn referenced_files_become_definitions() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| {
        fs::write(dir.path().join(name), value.to_string()).unwrap();
    };
    let text = json!({"$id": "text.json", "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string"});
    write("text.json", text);
    write(
        "node.json",
        json!({"properties": {"next": {"$ref": "#"}, "text": {"$ref": "text.json"}}, "$defs": {"n": {"type": "integer"}}}),
    );
    write(
        "sch.json",
        json!({"type": "object", "properties": {"a": {"$ref": "text.json"}}, "required": ["a"]}),
    );
    write(
        "old.json",
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
    );
    write("named.json", json!({"items": {"$anchor": "x"}}));
    let check_and_bundle = |schema: Value| {
        assert_eq!(find_schema_errors(&schema, dir.path()), []);
        let bundled = bundle_schema(&schema, dir.path());
        if let Ok(Some(whole)) = &bundled {
            CompiledSchema::compile(whole, Path::new("/nowhere")).unwrap();
        }
        bundled
    };
    assert_eq!(
        check_and_bundle(json!({"$ref": "#/$defs/a", "$defs": {"a": {}}})),
        Ok(None)
    );
    assert_eq!(
        check_and_bundle(json!({"title": "T", "$ref": "./sch.json"}))
            .unwrap()
            .unwrap(),
        json!({
            "title": "T",
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/text"}},
            "required": ["a"],
            "$defs": {"text": {"type": "string"}},
        })
    );
    assert_eq!(
        check_and_bundle(json!({
            "properties": {"n": {"$ref": "node.json"}, "i": {"$ref": "node.json#/$defs/n"}, "s": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {}},
        }))
        .unwrap()
        .unwrap(),
        json!({
            "properties": {
                "n": {"$ref": "#/$defs/node_2"},
                "i": {"$ref": "#/$defs/node_2/$defs/n"},
                "s": {"$ref": "#/$defs/node"},
            },
            "$defs": {
                "node": {},
                "node_2": {
                    "properties": {"next": {"$ref": "#/$defs/node_2"}, "text": {"$ref": "#/$defs/text"}},
                    "$defs": {"n": {"type": "integer"}},
                },
                "text": {"type": "string"},
            },
        })
    );
    let old = check_and_bundle(json!({"$ref": "old.json"}))
        .unwrap()
        .unwrap();
    assert_eq!(old["$schema"], "http://json-schema.org/draft-07/schema#");
    assert!(check_and_bundle(json!({"properties": {"a": {"$ref": "old.json"}}})).is_err());
    assert!(check_and_bundle(json!({"properties": {"a": {"$ref": "named.json"}}})).is_err());
}
