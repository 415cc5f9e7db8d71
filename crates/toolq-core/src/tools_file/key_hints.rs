//! Hints for unknown keys: those of other formats, and those in the wrong table.

/// Returns a hint for the unknown `key` of a table with these `fields`, if it is a common mistake.
pub(crate) fn find_key_hint(key: &str, fields: &[&str]) -> Option<&'static str> {
    if fields.contains(&"input_schema")
        && let Some(hint) = find_tool_key_hint(key)
    {
        return Some(hint);
    }
    let is_server_table = fields.contains(&"restarts");
    let has_policy = fields.contains(&"on_failure");
    let hint = match key {
        "args" | "argv" | "env" | "cwd" | "pass_env" if is_server_table => {
            "it is a part of `command`: `command: {argv: [npx, -y, PACKAGE], env: {NAME: value}}`"
        }
        "type" | "transport" if is_server_table => {
            "leave it out: a server with `command` is started, one with `url` is asked over HTTP"
        }
        "timeout" | "retry" | "approve" | "coerce" if is_server_table => {
            "it is a setting of its tools: write it under `defaults` of the server"
        }
        "timeout" | "retry" | "sandbox" | "wrapper" | "approve" if fields.contains(&"dashes") => {
            "it is a key of the tool: write it next to `command`"
        }
        "retries" | "max_retries" | "attempts" if has_policy => {
            "did you mean `retry`? For example `retry: {times: 3, on: [unavailable, timeout]}`"
        }
        "timeout_seconds" | "timeout_secs" | "timeout_ms" if has_policy => {
            "did you mean `timeout`? It has a unit: `timeout: 30s`"
        }
        "requires_approval" | "require_approval" | "needs_approval" | "approval" | "confirm"
            if has_policy =>
        {
            "did you mean `approve`? For example `approve: true`"
        }
        "temperature" | "thinking" | "top_p" | "top_k" if fields.contains(&"extra_body") => {
            "it is sent as part of `extra_body`: `extra_body: {temperature: 0}`"
        }
        "hosts" if fields.contains(&"servers") => {
            "limits are those of a tool, of `defaults` or of a server: `max_parallel: 2`, `rate: 10/s`"
        }
        _ => return None,
    };
    Some(hint)
}

/// Returns a hint for the unknown `key` of a tool.
fn find_tool_key_hint(key: &str) -> Option<&'static str> {
    let hint = match key {
        "secret" | "secrets" => "it is a top-level key: `secrets: [NAME]`, next to `tools`",
        "root" | "rules" | "version" => "it is a top-level key: write it next to `tools`",
        "parameters" | "inputSchema" | "schema" | "input" | "args" => {
            "did you mean `input_schema`?"
        }
        "argv" | "env" | "stdin" | "stderr" | "cwd" | "pass_env" | "success_exit" | "dashes" => {
            "it is a key of `command`: `command: {argv: [cat, --, \"{path}\"], env: {NAME: value}}`"
        }
        "url" | "method" | "query" | "headers" | "body" | "form" | "select" => {
            "it is a key of `http`: `http: {url: \"https://…\"}`"
        }
        "cmd" | "run" | "exec" | "shell" | "script" => {
            "did you mean `command`? It is a list: `command: [sh, -c, 'wc -w -- \"$1\"', --, \"{path}\"]`"
        }
        "model" | "system" | "endpoint" | "max_turns" | "max_tokens" => {
            "it is a key of `agent`: `agent: {endpoint: \"https://…\", model: …}`"
        }
        "name" => "the name of a tool is its key in `tools`",
        "backend" | "handler" | "function" | "type" => {
            "what does the work is one of `command`, `http`, `agent` and `mcp`"
        }
        "read_only" | "readonly" | "annotations" | "side_effects" | "idempotent" => {
            "did you mean `effect`? It is `read`, `idempotent` or `write`"
        }
        "parallel" | "concurrent" | "parallel_safe" => {
            "did you mean `concurrency_safe`? Calls with `effect: read` run in parallel without it"
        }
        _ => return None,
    };
    Some(hint)
}
