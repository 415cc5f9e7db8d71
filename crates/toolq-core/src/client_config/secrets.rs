//! Tells which arguments and addresses may be secret. Values of variables, headers and parameters are never copied, whatever they are.

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

/// Whether an argument may have a secret: `Authorization: Bearer x`, `--url=https://h/?token=x`, `postgres://me:pw@h`, `sk-ant-api03-a1B2…`.
pub(super) fn has_secret(argument: &str) -> bool {
    (argument.contains([':', '=']) && has_secret_word(argument)) || is_secret_address(argument)
}

/// Whether an address has a user, and so perhaps a password, or a part that may be a secret.
pub(super) fn is_secret_address(url: &str) -> bool {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    let has_user = |rest: &str| rest.split('/').next().unwrap_or_default().contains('@');
    rest.is_some_and(has_user) || is_random(url)
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
        for argument in [
            "Authorization: Bearer x",
            "API_KEY=x",
            "--apiKeys=x",
            "Server=h;Password=x",
            "https://host/path?token=x",
            "postgres://me:pw@host/db",
            "https://mcp.example.com/s/9f8e7d6c5b4a39281706f5e4d3c2b1a0/mcp",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-ant-api03-abcDEF0123456789",
            "aHVudGVyMmh1bnRlcjI0Nw==",
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
            "server-sequential-thinking-2025",
            "/home/me/data/memory-2026/memory.json",
            "image@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "github:a/b#0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c",
        ] {
            assert!(!has_secret(argument), "{argument}");
        }
        assert!(is_secret_option("--api-key") && !is_secret_option("--path"));
    }
}
