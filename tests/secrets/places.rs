//! Places where a secret may come by: what a tool prints, what a server sends back, what a model asks.

use serde_json::{Value, json};

use crate::{ODD, PLAIN};

/// A tool's backing and a call's input, in which a canary comes by.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) backing: String,
    pub(crate) input: Value,
    /// Toolq's own words leave it out, so that nothing has to be masked.
    pub(crate) is_untold: bool,
}

fn place(name: &'static str, backing: impl Into<String>, input: Value) -> Place {
    Place {
        name,
        backing: backing.into(),
        input,
        is_untold: false,
    }
}

/// A script with both canaries in its environment.
fn script(name: &'static str, script: &str) -> Place {
    script_with(name, "", script)
}

/// The same with other keys of the tool.
fn script_with(name: &'static str, keys: &str, script: &str) -> Place {
    let argv = json!(["sh", "-c", script]);
    let env = "env: {K: \"${PLAIN}\", O: \"${ODD}\"}";
    let backing = format!("{keys}\n    command: {{argv: {argv}, {env}}}");
    place(name, backing, json!({}))
}

/// A script that prints a text, one way of writing a canary that it has in its environment.
fn printed(name: &'static str, text: &str) -> Place {
    script(name, &format!("cat <<'END'\n{text}\nEND\n"))
}

/// Scripts that hand a canary on.
pub(crate) fn spoken() -> Vec<Place> {
    let json = |text: &str| Value::from(text).to_string();
    let go = json(ODD).replace('&', r"\u0026").replace('\'', r"\u0027");
    let html = ODD
        .replace('&', "&amp;")
        .replace('"', "&#34;")
        .replace('\'', "&#x27;");
    let encoded = "c4n4ry%20%22odd%22%20o%27%5c%c3%a9%2f%2b%3d%26%25%09tab";
    vec![
        script("stdout", r#"printf '%s %s' "$K" "$O""#),
        script("stderr", r#"printf '%s %s' "$K" "$O" >&2; exit 3"#),
        script("status tip", r#"printf '{"tip":"now %s"}\n' "$K" >&3"#),
        script(
            "two writes",
            r#"printf %.9s "$K"; sleep 0.05; printf %s "${K#?????????}""#,
        ),
        script(
            "the edge of a read",
            r#"head -c 65530 /dev/zero | tr '\0' x; printf %s "$K""#,
        ),
        script_with(
            "the edge of a cut",
            "max_output: 100",
            r#"for i in 0 1 2 3 4 5 6 7 8 9; do printf '%s' "$K"; done"#,
        ),
        script_with(
            "the whole output",
            "max_output: 64",
            r#"printf '%s %s' "$K" "$O"; head -c 9000 /dev/zero | tr '\0' x; printf %s "$K""#,
        ),
        script(
            "the end of stderr",
            r#"head -c 90000 /dev/zero | tr '\0' x >&2; printf %s "$K" >&2; exit 1"#,
        ),
        script(
            "base64",
            r#"for p in '' u: us: use:; do printf '%s%s\n' "$p" "$K" | base64 | tr -d '\n'; echo; done"#,
        ),
        script(
            "every byte percent-encoded",
            r#"printf %s "$K" | od -An -v -tx1 | tr -d '\n' | tr ' ' %"#,
        ),
        script("base64 in lines", r#"printf '%050d%s\n' 7 "$K" | base64"#),
        script("percent-encoded", &format!("echo '{encoded}'")),
        printed("JSON in JSON", &json(&json(ODD))),
        printed("JSON in JSON in JSON", &json(&json(&json(ODD)))),
        printed("JSON of Go", &go),
        printed("JSON of Go in JSON", &json(&go)),
        printed(
            "JSON of PHP",
            &json(ODD).replace('/', r"\/").replace('é', r"\u00e9"),
        ),
        printed("HTML", &html),
        printed("HTML in JSON", &json(&html)),
        printed(
            "an escape in a text",
            &format!("at {}", PLAIN.replacen('c', r"\u0063", 1)),
        ),
        script(
            "an escape at the edge of a read",
            r#"head -c 65533 /dev/zero | tr '\0' x; printf '\\u0063%s' "${K#?}""#,
        ),
        script_with(
            "JSON with escapes",
            "output: json",
            r#"printf '{"k":"\\u0063%s"}' "${K#?}""#,
        ),
        script_with(
            "content blocks",
            "output: content",
            r#"printf '[{"type":"text","text":"\\u0063%s %s"}]' "${K#?}" "$K""#,
        ),
        script_with(
            "an output that is no JSON",
            "output: json",
            r#"printf '%s' "$O""#,
        ),
        script_with(
            "what a timeout leaves",
            "timeout: 300ms",
            r#"printf %s "$K"; printf %s "$O" >&2; exec sleep 30"#,
        ),
        script_with(
            "an author's text",
            r#"messages: {failed: "{error}: {details}"}"#,
            r#"printf %s "$K"; exit 1"#,
        ),
    ]
}

/// Requests that send a canary to `server`, which sends it back, and to one that isn't there.
pub(crate) fn sent(server: &str) -> Vec<Place> {
    let http = |name, request: String| place(name, format!("http: {{{request}}}"), json!({}));
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
        Place {
            is_untold: true,
            ..http(
                "endpoint error",
                "url: \"http://127.0.0.1:1/${PLAIN}\", query: {k: \"${PLAIN}\"}".to_owned(),
            )
        },
    ]
}

/// Inputs of a model that has got hold of a canary.
pub(crate) fn asked() -> Vec<Place> {
    let cat = "status: {doing: \"reading {x}\"}\n    command: [echo, --, \"{x}\"]";
    let large = format!("{}{PLAIN}{}", "x".repeat(40_000), "y".repeat(40_000));
    vec![
        place("input", cat, json!({"x": format!("{PLAIN} {ODD}")})),
        place("a large input", cat, json!({ "x": large })),
        place("an unknown key", cat, json!({"x": "1", PLAIN: 1, ODD: 2})),
        place(
            "a long unknown key",
            cat,
            json!({"x": "1", format!("{}{PLAIN}", "x".repeat(185)): 1}),
        ),
        place(
            "a coerced input",
            cat,
            json!({"x": "1", "n": "3", "list": format!("[\"{PLAIN}\"]")}),
        ),
        place(
            "a path outside",
            format!("paths: [x]\n    {cat}"),
            json!({"x": format!("../{PLAIN}")}),
        ),
    ]
}
