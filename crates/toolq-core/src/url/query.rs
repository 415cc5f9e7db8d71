//! Encodes names and values of a query.

use url::form_urlencoded::byte_serialize;

/// Percent-encodes a name or a value. A space becomes `%20`, as in a path: every server reads it, and not every one reads
/// `+` as a space.
pub(crate) fn encode_query_text(text: &str) -> String {
    let parts = byte_serialize(text.as_bytes());
    parts
        .map(|part| if part == "+" { "%20" } else { part })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_is_percent_encoded_and_a_plus_stays_a_plus() {
        assert_eq!(encode_query_text("a b+c&d=ü"), "a%20b%2Bc%26d%3D%C3%BC");
        assert_eq!(encode_query_text("plain-text_1.0"), "plain-text_1.0");
    }
}
