//! Tells which arguments are secret. Everything else that may be a secret isn't copied, whatever it is.

/// Parts of names whose values are secret.
const SECRET_WORDS: [&str; 15] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "auth",
    "authorization",
    "credential",
    "cookie",
    "session",
    "dsn",
    "pat",
    "bearer",
];

/// Whether an argument says itself that it has a secret: `Authorization: Bearer x`, `--url=https://h/?token=x`, `postgres://me:pw@h`.
pub(super) fn has_secret(argument: &str) -> bool {
    (argument.contains([':', '=']) && has_secret_word(argument)) || has_user_info(argument)
}

/// Whether a URL has a user in it, and so perhaps a password.
pub(super) fn has_user_info(url: &str) -> bool {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest.split('/').next().unwrap_or_default().contains('@'))
}

/// Whether the value of a command-line option is secret: `--api-key`.
pub(super) fn is_secret_option(option: &str) -> bool {
    option.starts_with('-') && has_secret_word(option)
}

/// Whether a word of the name says that its value is secret. `KEYBOARD` has no such word, `API_KEY` and `apiKey` do.
fn has_secret_word(name: &str) -> bool {
    let mut words = String::new();
    let mut was_lowercase = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lowercase {
            words.push('_');
        }
        was_lowercase = c.is_ascii_lowercase();
        words.push(c.to_ascii_lowercase());
    }
    let mut words = words.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        let singular = word.strip_suffix('s').unwrap_or(word);
        [word, singular]
            .iter()
            .any(|word| SECRET_WORDS.contains(word))
            || ["apikey", "accesskey"].contains(&singular)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_say_so_are_secret() {
        for argument in [
            "Authorization: Bearer x",
            "API_KEY=x",
            "--apiKeys=x",
            "Server=h;Password=x",
            "https://host/path?token=x",
            "postgres://me:pw@host/db",
        ] {
            assert!(has_secret(argument), "{argument}");
        }
        for argument in [
            "-y",
            "GITHUB_TOKEN",
            "--keyboard=de",
            "--pattern=*.md",
            "https://mcp.example.com/v1/server",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "mcp-server-git==2026.10.19",
        ] {
            assert!(!has_secret(argument), "{argument}");
        }
        assert!(is_secret_option("--api-key") && !is_secret_option("--path"));
    }
}
