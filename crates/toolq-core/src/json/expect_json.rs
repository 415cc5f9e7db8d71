//! JSON that can't fail to be made.

/// Takes the JSON of a value that can always be serialized: text, a number, raw JSON, or an object whose keys are
/// texts.
///
/// # Panics
/// The value couldn't be serialized, which is a bug. An empty text in its place could be mistaken for a result.
#[expect(
    clippy::expect_used,
    reason = "a bug that must not pass for an empty line"
)]
pub fn expect_json<T>(made: serde_json::Result<T>) -> T {
    made.expect("texts, numbers and raw JSON always have a JSON form")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::expect_json;

    #[test]
    fn a_value_without_a_json_form_is_no_empty_line() {
        assert_eq!(expect_json(serde_json::to_string(&["a"])), r#"["a"]"#);
        let formless = BTreeMap::from([([1], 1)]);
        let made = std::panic::catch_unwind(|| expect_json(serde_json::to_string(&formless)));
        assert!(made.is_err());
    }
}
