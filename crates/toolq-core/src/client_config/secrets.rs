//! Tells what may be a secret. In doubt, it is one: a value that isn't copied has to be set once, one that is copied stays
//! in a file that many can read.

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

/// From this length on, a text of letters and digits without words may be a secret.
const MIN_SECRET_CHARS: usize = 16;

/// Whether the value of a variable may be secret. `name` may be empty.
pub(super) fn looks_secret(name: &str, value: &str) -> bool {
    if value.is_empty() || matches!(value, "true" | "false") {
        return false;
    }
    if has_secret_word(name) {
        return true;
    }
    let has_user_info = value
        .split_once("://")
        .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@'));
    has_user_info || has_secret_word_as_parameter(value) || is_random(value)
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

/// Whether a URL or a connection string has a secret among its parameters.
fn has_secret_word_as_parameter(value: &str) -> bool {
    let parameters = value.split(['?', '&', ';', ' ']);
    let mut named = parameters.filter_map(|parameter| parameter.split_once('='));
    named.any(|(name, value)| !value.is_empty() && has_secret_word(name))
}

/// Whether a part of the text is too long and too mixed to be a word, a version, or a path of words.
fn is_random(value: &str) -> bool {
    // `NAME==VERSION` pins a package.
    let value = value.replace("==", " ");
    let mut parts = value.split(|c: char| !(c.is_ascii_alphanumeric() || "+=_-".contains(c)));
    parts.any(|part| {
        let is_hex = part.chars().all(|c| c.is_ascii_hexdigit());
        let is_digest = part.len() == 64 && value.contains("sha256:");
        let is_commit = part.len() == 40 && value.contains(['#', '@']);
        if is_hex && (is_digest || is_commit) {
            return false;
        }
        let digits = part.chars().filter(char::is_ascii_digit).count();
        let letters = part.chars().filter(char::is_ascii_alphabetic).count();
        let is_words = part.split(['-', '_']).all(|word| {
            word.chars().all(|c| c.is_ascii_lowercase()) || word.chars().all(|c| c.is_ascii_digit())
        });
        part.len() >= MIN_SECRET_CHARS && digits > 0 && letters > 0 && !is_words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_told_from_what_is_not() {
        for (name, value) in [
            ("GITHUB_TOKEN", "x"),
            ("apiKey", "x"),
            ("API_KEYS", "x"),
            ("OPENAI_APIKEY", "x"),
            ("GITHUB_PAT", "x"),
            ("DATABASE_URL", "postgres://me:pw@host/db"),
            ("CONNECTION", "Server=h;Password=x"),
            ("URL", "https://host/path?token=x"),
            ("ANY", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
            ("", "sk-ant-api03-abcDEF0123456789"),
            ("", "aHVudGVyMmh1bnRlcjI0Nw=="),
            ("", "--header=Bearer 0f1e2d3c4b5a69788796a5b4c3d2e1f0a"),
        ] {
            assert!(looks_secret(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("KEYBOARD", "de"),
            ("PATTERN", "*.md"),
            ("API_KEY", ""),
            ("USE_TOKEN", "true"),
            ("MEMORY_FILE_PATH", "/home/me/data/memory-2026/memory.json"),
            ("URL", "https://mcp.example.com/v1/server"),
            ("", "@modelcontextprotocol/server-filesystem@2026.8.31"),
            ("", "server-sequential-thinking-2025"),
            ("", "mcp-server-git==2026.10.19"),
            ("PORT", "3000"),
            (
                "",
                "image@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
            ),
            ("", "github:a/b#0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"),
        ] {
            assert!(!looks_secret(name, value), "{name}={value}");
        }
    }
}
