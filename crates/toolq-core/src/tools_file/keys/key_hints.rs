//! Hints for keys from other formats, and for keys in the wrong table.

/// Returns a hint for the unknown `key` of a table with these `fields`, if it is a common mistake.
pub(crate) fn find_key_hint(key: &str, fields: &[&str]) -> Option<&'static str> {
    let is_tool_table = fields.contains(&"input_schema");
    let hint = match key {
        "secret" | "secrets" if is_tool_table => {
            "it is a top-level key: `secrets: [NAME]`, next to `tools`"
        }
        "root" | "rules" | "version" if is_tool_table => {
            "it is a top-level key: write it next to `tools`"
        }
        "parameters" | "inputSchema" | "schema" | "input" | "args" if is_tool_table => {
            "did you mean `input_schema`?"
        }
        "argv" | "env" | "stdin" | "cwd" | "pass_env" | "success_exit" if is_tool_table => {
            "it is a key of `command`: `command: {argv: [cat, --, \"{path}\"], env: {NAME: value}}`"
        }
        "url" | "method" | "query" | "headers" | "body" | "select" if is_tool_table => {
            "it is a key of `http`: `http: {url: \"https://…\"}`"
        }
        "cmd" | "run" | "exec" | "shell" | "script" if is_tool_table => {
            "did you mean `command`? It is a list: `command: [sh, -c, 'wc -w -- \"$1\"', --, \"{path}\"]`"
        }
        "model" | "system" | "endpoint" | "max_turns" | "max_tokens" if is_tool_table => {
            "it is a key of `agent`: `agent: {endpoint: \"https://…\", model: …}`"
        }
        "name" if is_tool_table => "the name of a tool is its key in `tools`",
        _ => return None,
    };
    Some(hint)
}

/// Like [`find_key_hint`], for a file that another one includes.
pub(crate) fn find_included_key_hint(key: &str, fields: &[&str]) -> Option<&'static str> {
    let is_top_level = fields.contains(&"servers");
    match key {
        "include" if is_top_level => Some(
            "an included file doesn't include others: name them all in the file that includes this one",
        ),
        "concurrency" | "root" | "secrets" | "builtins" | "defaults" | "messages" | "formats"
        | "normalize" | "prices" | "env_file"
            if is_top_level =>
        {
            Some("write it in the file that includes this one, which has it for all tools")
        }
        _ => find_key_hint(key, fields),
    }
}
