//! Sources through which a secret can reach toolq: tool output, server responses, and inputs from a model.

use serde_json::{Value, json};

use crate::secrets::{ODD, PLAIN};

/// A tool's backing and a call's input, through which a canary reaches toolq.
pub(crate) struct LeakSource {
    pub(crate) name: &'static str,
    pub(crate) backing: String,
    pub(crate) input: Value,
    /// Whether toolq's message leaves the canary out, so that nothing has to be masked.
    pub(crate) is_omitted: bool,
}

fn leak_source(name: &'static str, backing: impl Into<String>, input: Value) -> LeakSource {
    LeakSource {
        name,
        backing: backing.into(),
        input,
        is_omitted: false,
    }
}

/// A script with both canaries in its environment.
fn script_source(name: &'static str, script: &str) -> LeakSource {
    script_source_with_keys(name, "", script)
}

/// Like [`script_source`], with additional keys of the tool.
fn script_source_with_keys(name: &'static str, keys: &str, script: &str) -> LeakSource {
    let argv = json!(["sh", "-c", script]);
    let env = "env: {K: \"${PLAIN}\", O: \"${ODD}\"}";
    let backing = format!("{keys}\n    command: {{argv: {argv}, {env}}}");
    leak_source(name, backing, json!({}))
}

/// A script that prints `text`: some encoding of a canary that it also has in its environment.
fn printed_source(name: &'static str, text: &str) -> LeakSource {
    script_source(name, &format!("cat <<'END'\n{text}\nEND\n"))
}

/// Scripts that pass a canary on, in every encoding and position.
pub(crate) fn tool_output_sources() -> Vec<LeakSource> {
    let json = |text: &str| Value::from(text).to_string();
    let go_json = json(ODD).replace('&', r"\u0026").replace('\'', r"\u0027");
    let html = ODD
        .replace('&', "&amp;")
        .replace('"', "&#34;")
        .replace('\'', "&#x27;");
    let encoded = "c4n4ry%20%22odd%22%20o%27%5c%c3%a9%2f%2b%3d%26%25%09tab";
    vec![
        script_source("stdout", r#"printf '%s %s' "$K" "$O""#),
        script_source("stderr", r#"printf '%s %s' "$K" "$O" >&2; exit 3"#),
        script_source("status tip", r#"printf '{"tip":"now %s"}\n' "$K" >&3"#),
        script_source(
            "two writes",
            r#"printf %.9s "$K"; sleep 0.05; printf %s "${K#?????????}""#,
        ),
        script_source(
            "the edge of a read",
            r#"head -c 65530 /dev/zero | tr '\0' x; printf %s "$K""#,
        ),
        script_source_with_keys(
            "the edge of a cut",
            "max_output: 100",
            r#"for i in 0 1 2 3 4 5 6 7 8 9; do printf '%s' "$K"; done"#,
        ),
        script_source_with_keys(
            "the whole output",
            "max_output: 64",
            r#"printf '%s %s' "$K" "$O"; head -c 9000 /dev/zero | tr '\0' x; printf %s "$K""#,
        ),
        script_source(
            "the end of stderr",
            r#"head -c 90000 /dev/zero | tr '\0' x >&2; printf %s "$K" >&2; exit 1"#,
        ),
        script_source(
            "base64",
            r#"for p in '' u: us: use:; do printf '%s%s\n' "$p" "$K" | base64 | tr -d '\n'; echo; done"#,
        ),
        script_source(
            "every byte percent-encoded",
            r#"printf %s "$K" | od -An -v -tx1 | tr -d '\n' | tr ' ' %"#,
        ),
        script_source("base64 in lines", r#"printf '%050d%s\n' 7 "$K" | base64"#),
        script_source("percent-encoded", &format!("echo '{encoded}'")),
        printed_source("JSON in JSON", &json(&json(ODD))),
        printed_source("JSON in JSON in JSON", &json(&json(&json(ODD)))),
        printed_source("JSON as Go writes it", &go_json),
        printed_source("JSON as Go writes it, in JSON", &json(&go_json)),
        printed_source(
            "JSON as PHP writes it",
            &json(ODD).replace('/', r"\/").replace('é', r"\u00e9"),
        ),
        printed_source("HTML", &html),
        printed_source("HTML in JSON", &json(&html)),
        printed_source(
            "an escape in a text",
            &format!("at {}", PLAIN.replacen('c', r"\u0063", 1)),
        ),
        script_source(
            "an escape at the edge of a read",
            r#"head -c 65533 /dev/zero | tr '\0' x; printf '\\u0063%s' "${K#?}""#,
        ),
        script_source_with_keys(
            "JSON with escapes",
            "output: json",
            r#"printf '{"k":"\\u0063%s"}' "${K#?}""#,
        ),
        script_source_with_keys(
            "content blocks",
            "output: content",
            r#"printf '[{"type":"text","text":"\\u0063%s %s"}]' "${K#?}" "$K""#,
        ),
        script_source_with_keys(
            "an output that isn't JSON",
            "output: json",
            r#"printf '%s' "$O""#,
        ),
        script_source_with_keys(
            "output before a timeout",
            "timeout: 300ms",
            r#"printf %s "$K"; printf %s "$O" >&2; exec sleep 30"#,
        ),
        script_source_with_keys(
            "a message from tools.yaml",
            r#"messages: {failed: "{error}: {details}"}"#,
            r#"printf %s "$K"; exit 1"#,
        ),
    ]
}

/// Requests that send a canary to `server`, which echoes it, and one to an address where no server listens.
pub(crate) fn http_sources(server: &str) -> Vec<LeakSource> {
    let http = |name, request: String| leak_source(name, format!("http: {{{request}}}"), json!({}));
    vec![
        http(
            "header",
            format!("url: \"{server}\", headers: {{authorization: \"Bearer ${{PLAIN}}\"}}"),
        ),
        http(
            "query",
            format!("url: \"{server}\", query: {{key: \"${{PLAIN}}\", odd: \"${{ODD}}\"}}"),
        ),
        http(
            "body",
            format!("url: \"{server}\", method: POST, body: {{key: \"${{ODD}}\"}}"),
        ),
        http(
            "a failing status",
            format!("url: \"{server}/500/${{PLAIN}}\""),
        ),
        LeakSource {
            is_omitted: true,
            ..http(
                "endpoint error",
                "url: \"http://127.0.0.1:1/${PLAIN}\", query: {k: \"${PLAIN}\"}".to_owned(),
            )
        },
    ]
}

/// Inputs from a model that got hold of a canary.
pub(crate) fn model_input_sources() -> Vec<LeakSource> {
    let cat = "status: {doing: \"reading {x}\"}\n    command: [echo, --, \"{x}\"]";
    let large = format!("{}{PLAIN}{}", "x".repeat(40_000), "y".repeat(40_000));
    vec![
        leak_source("input", cat, json!({"x": format!("{PLAIN} {ODD}")})),
        leak_source("a large input", cat, json!({ "x": large })),
        leak_source("an unknown key", cat, json!({"x": "1", PLAIN: 1, ODD: 2})),
        leak_source(
            "a long unknown key",
            cat,
            json!({"x": "1", format!("{}{PLAIN}", "x".repeat(185)): 1}),
        ),
        leak_source(
            "a coerced input",
            cat,
            json!({"x": "1", "n": "3", "list": format!("[\"{PLAIN}\"]")}),
        ),
        leak_source(
            "a path outside",
            format!("paths: [x]\n    {cat}"),
            json!({"x": format!("../{PLAIN}")}),
        ),
    ]
}
