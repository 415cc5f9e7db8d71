//! Says why a text can't be read as JSON.

/// Says why `what`, such as `the input`, can't be read. A number beyond every float is valid JSON all the same, so it isn't
/// called anything else.
pub(crate) fn describe_parse_error(what: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split(" at line ").next().unwrap_or_default() {
        "number out of range" => format!("{what} has a number out of range; at most 1.8e308"),
        cause => format!("{what} is not valid JSON: {cause}"),
    }
}
