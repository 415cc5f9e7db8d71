//! Suggests settings that declarations don't contain, as comments: only a person knows what a tool does.

use serde_json::Value;

/// First words of the names of tools that only look at something.
const READING_WORDS: [&str; 14] = [
    "check", "count", "describe", "fetch", "find", "get", "glob", "grep", "list", "look", "query",
    "read", "search", "show",
];

/// Words in the names of tools that may take minutes.
const SLOW_WORDS: [&str; 10] = [
    "bash", "build", "compile", "crawl", "deploy", "download", "execute", "install", "run", "test",
];

/// Words in the names of inputs that are paths.
const PATH_WORDS: [&str; 8] = [
    "dir",
    "directory",
    "file",
    "filename",
    "filepath",
    "folder",
    "path",
    "paths",
];

/// Returns a comment for each setting that the name or the inputs of a tool suggest.
pub(super) fn suggest_settings(name: &str, effect: &str, schema: &Value) -> String {
    let words = split_words(name);
    let mut comments = Vec::new();
    let reads = |word: &String| READING_WORDS.contains(&word.as_str());
    if effect == "write" && words.first().is_some_and(reads) {
        let why = "instead, if it changes nothing: it may run beside others and be repeated";
        comments.push(("effect: read".to_owned(), why));
    }
    let paths = find_paths(schema);
    if !paths.is_empty() {
        let why = "if these are local paths: they must stay inside `root`";
        comments.push((format!("paths: [{}]", paths.join(", ")), why));
    }
    let is_slow = words.iter().any(|word| SLOW_WORDS.contains(&word.as_str()));
    comments.push(if is_slow {
        ("timeout: 5m".to_owned(), "the default is 30s")
    } else {
        ("timeout: 30s".to_owned(), "the default")
    });
    let lines = comments
        .iter()
        .map(|(setting, why)| format!("    # {setting:<18}  # {why}\n"));
    lines.collect()
}

/// Returns the inputs whose names say that they are paths, and that are texts or lists of texts.
fn find_paths(schema: &Value) -> Vec<&str> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let is_text = |schema: &Value| schema["type"] == "string" && schema.get("enum").is_none();
    let is_path = |(name, schema): &(&String, &Value)| {
        // A name is written into the file without quotes.
        name.chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
            && split_words(name)
                .iter()
                .any(|word| PATH_WORDS.contains(&word.as_str()))
            && (is_text(schema) || schema["type"] == "array" && is_text(&schema["items"]))
    };
    let paths = properties.filter(is_path);
    paths.map(|(name, _)| name.as_str()).collect()
}

/// Splits a name into its words, in lowercase: `readFile` and `read_file` into `read` and `file`.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for char in name.chars() {
        let begins_word = char.is_uppercase() && previous.is_lowercase();
        if begins_word || !char.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| char.is_alphanumeric()) {
            word.extend(char.to_lowercase());
        }
        previous = char;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_follow_names_and_types() {
        let schema = json!({"properties": {
            "file_path": {"type": "string"}, "outputDir": {"type": "string"}, "paths": {"type": "array", "items": {"type": "string"}},
            "profile": {"type": "string"}, "path_count": {"type": "integer"}, "file\nname": {"type": "string"},
            "file_type": {"type": "string", "enum": ["a"]}}});
        let comments = suggest_settings("getFile", "write", &schema);
        assert!(comments.contains("# effect: read "), "{comments}");
        assert!(
            comments.contains("# paths: [file_path, outputDir, paths]  #"),
            "{comments}"
        );
        assert!(comments.contains("# timeout: 30s "), "{comments}");
        let comments = suggest_settings("budget_build", "write", &json!(true));
        assert_eq!(comments, "    # timeout: 5m         # the default is 30s\n");
        let comments = suggest_settings("read_file", "read", &json!({}));
        assert!(!comments.contains("effect"), "{comments}");
    }
}
