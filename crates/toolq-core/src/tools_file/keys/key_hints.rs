//! Keys that authors of other formats write by habit, and what they are called here.

/// What to do about the unknown `key` of a table that may have `fields`, where it is known from elsewhere.
pub(crate) fn cure(key: &str, fields: &[&str]) -> Option<&'static str> {
    let of_tool = fields.contains(&"input_schema");
    let cure = match key {
        "secret" | "secrets" if of_tool => {
            "it is a key of the file: `secrets: [NAME]`, beside `tools`"
        }
        "root" | "rules" | "version" if of_tool => {
            "it is a key of the file: write it beside `tools`"
        }
        "parameters" | "inputSchema" | "schema" | "input" | "args" if of_tool => {
            "did you mean `input_schema`?"
        }
        "argv" | "env" | "stdin" | "cwd" | "pass_env" | "success_exit" if of_tool => {
            "it is a key of `command`: `command: {argv: [cat, --, \"{path}\"], env: {NAME: value}}`"
        }
        "url" | "method" | "query" | "headers" | "body" | "select" if of_tool => {
            "it is a key of `http`: `http: {url: \"https://…\"}`"
        }
        "cmd" | "run" | "exec" | "shell" | "script" if of_tool => {
            "did you mean `command`? It is a list: `command: [sh, -c, 'wc -w \"$1\"', --, \"{path}\"]`"
        }
        "model" | "system" | "endpoint" | "max_turns" | "max_tokens" if of_tool => {
            "it is a key of `agent`: `agent: {endpoint: \"https://…\", model: …}`"
        }
        "name" if of_tool => "the name of a tool is the key before it",
        _ => return None,
    };
    Some(cure)
}
