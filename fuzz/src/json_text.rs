//! JSON that is read without building a tree, compared with the tree that `serde_json` builds.

use serde_json::value::RawValue;
use toolq_core::json::{Input, JsonKind, JsonText, ParsedObject, indent_json, to_json_line};
use toolq_core::transcript::complete_partial_json;

use crate::json_tree::JsonTree;

/// Maximum nesting depth of an input, as documented.
const MAX_DEPTH: usize = 64;

/// Reads a JSON text in both ways.
pub fn json_text(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let tree = JsonTree::parse(text);
    let parsed = ParsedObject::parse(text);
    match (&parsed, &tree) {
        (Ok(Some(object)), Ok(JsonTree::Object(members))) => check_members(object, members),
        (Ok(None), Ok(JsonTree::Object(_))) => panic!("an object wasn't recognized"),
        (Err(error), Ok(_)) => panic!("valid JSON was refused: {error}"),
        (Ok(_), Err(_)) => {
            let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
            assert!(is_json, "invalid JSON was accepted");
        }
        _ => {}
    }
    check_input(text, tree.as_ref().ok());
    // Text that isn't JSON must at least not cause a panic.
    let json = JsonText::new(text);
    let _ = (json.object(), json.elements(), json.to_text(), json.kind());
    if let Ok(tree) = &tree {
        let value = JsonText::new(text.trim_matches([' ', '\t', '\r', '\n']));
        check_value(value, tree);
        check_rewritten(text, tree);
    }
    check_partial(text, tree.as_ref().ok());
}

fn check_members(object: &ParsedObject<'_>, members: &[(String, JsonTree)]) {
    assert_eq!(object.members().len(), members.len());
    for ((key, value), (expected_key, expected)) in object.members().iter().zip(members) {
        assert_eq!(**key, **expected_key);
        check_value(*value, expected);
    }
    let tree = JsonTree::Object(
        members
            .iter()
            .map(|(key, _)| (key.clone(), JsonTree::Null))
            .collect(),
    );
    assert_eq!(object.duplicate_key().is_some(), tree.has_duplicate_key());
}

fn check_value(json: JsonText<'_>, expected: &JsonTree) {
    assert_eq!(JsonTree::parse(json.get()).ok().as_ref(), Some(expected));
    let kind = match expected {
        JsonTree::Null => JsonKind::Null,
        JsonTree::Boolean(_) => JsonKind::Boolean,
        JsonTree::Number(_) => JsonKind::Number,
        JsonTree::Text(_) => JsonKind::String,
        JsonTree::Array(_) => JsonKind::Array,
        JsonTree::Object(_) => JsonKind::Object,
    };
    assert_eq!(json.kind(), kind);
    assert_eq!(json.is_null(), *expected == JsonTree::Null);
    match expected {
        JsonTree::Text(text) => assert_eq!(json.to_text().as_deref(), Some(&**text)),
        JsonTree::Array(items) => {
            let elements = json.elements().unwrap();
            assert_eq!(elements.len(), items.len());
            elements
                .into_iter()
                .zip(items)
                .for_each(|(json, item)| check_value(json, item));
            let objects = json.objects().unwrap();
            let is_object: Vec<bool> = objects.map(|item| item.is_ok()).collect();
            let expected = items.iter().map(|item| matches!(item, JsonTree::Object(_)));
            assert_eq!(is_object, expected.collect::<Vec<_>>());
        }
        JsonTree::Object(members) => check_members(&json.object().unwrap(), members),
        _ => assert!(
            json.to_text().is_none() && json.elements().is_none() && json.object().is_none()
        ),
    }
}

/// An input is an object without duplicate keys, within limits.
fn check_input(text: &str, tree: Option<&JsonTree>) {
    let input = Input::parse(text);
    let Some(tree) = tree else {
        assert!(input.is_err(), "an input that isn't JSON was accepted");
        return;
    };
    let is_allowed = matches!(tree, JsonTree::Object(_))
        && !tree.has_duplicate_key()
        && tree.depth() <= MAX_DEPTH;
    match input {
        Ok(input) => {
            assert!(is_allowed, "a forbidden input was accepted");
            assert_eq!(input.text(), text.trim_matches([' ', '\t', '\r', '\n']));
            if let JsonTree::Object(members) = tree {
                for (key, value) in members {
                    let found = input.value_at(std::slice::from_ref(key)).unwrap();
                    assert_eq!(JsonTree::parse(found.get()).ok().as_ref(), Some(value));
                }
            }
        }
        // Exponents have limits, too.
        Err(error) => assert!(!is_allowed || text.contains(['e', 'E']), "{error}"),
    }
}

/// Writing JSON in another layout changes only whitespace.
fn check_rewritten(text: &str, tree: &JsonTree) {
    let line = to_json_line(text);
    assert!(!line.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']));
    assert_eq!(JsonTree::parse(&line).ok().as_ref(), Some(tree));
    assert_eq!(to_json_line(&line), line);
    let indented = indent_json(&line);
    assert_eq!(JsonTree::parse(&indented).ok().as_ref(), Some(tree));
    assert_eq!(indent_json(&indented), indented);
}

/// What is known of a partial object is a prefix of the whole one.
fn check_partial(text: &str, tree: Option<&JsonTree>) {
    let known = |part: &str| {
        let completed = complete_partial_json(part)?;
        Some(JsonTree::parse(&completed))
    };
    let Some(tree) = tree else {
        let _ = known(text);
        return;
    };
    for (end, _) in text.char_indices().step_by(1 + text.len() / 64) {
        if let Some(partial) = known(&text[..end]) {
            let partial = partial.unwrap();
            assert!(partial.is_prefix_of(tree), "{partial:?} of {tree:?}");
        }
    }
}
