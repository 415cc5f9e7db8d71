//! The names in a JSON pointer (RFC 6901).

/// Escapes a name for use in a JSON pointer.
pub fn escape_pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the name that a token of a JSON pointer encodes.
pub fn unescape_pointer_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Formats a path of keys and indices as a JSON pointer.
pub fn json_pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, part| {
        pointer + "/" + &escape_pointer_token(part)
    })
}

/// Returns the names on the path of a JSON pointer.
pub fn pointer_tokens(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(unescape_pointer_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_survives_in_a_pointer() {
        let path = ["", "a/b", "~", "~1", "~0~/", "ä"].map(str::to_owned);
        let pointer = json_pointer(&path);
        assert_eq!(pointer, "//a~1b/~0/~01/~00~0~1/ä");
        assert_eq!(pointer_tokens(&pointer).collect::<Vec<_>>(), path);
        assert_eq!(pointer_tokens("").count(), 0);
    }
}
