//! Secrets that would be told: names under `secrets` that mask nothing, and variables that seem to be secrets where
//! nothing masks them.

use crate::os::Environment;
use crate::tools_file::lints::environment::body_templates;
use crate::tools_file::yaml::Node;
use crate::types::{Backing, Body, Problem, Template, Tool, Tools};
use redact::Mask;

/// What stands in the name of a variable whose value is a secret.
const WORDS: [&str; 8] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Names under `secrets` that mask nothing: mistyped, not set, or with a value that would hide innocent text.
pub(crate) fn named(tree: &Node, environment: &Environment) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, place) in tree.texts("secrets") {
        let value = environment.get(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is not set or empty, so nothing is masked");
            (
                message,
                "`secrets` has names of variables of the environment; check the spelling",
            )
        } else if value.len() < Mask::SHORTEST {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked: they would hide innocent text",
            )
        } else {
            continue;
        };
        found.push(Problem::warning(place, message, "").with_hint(hint));
    }
    found
}

/// Variables that seem to be secrets and stand where values are not masked by themselves, each once for a tool.
pub(crate) fn used(tools: &Tools, tree: &Node) -> Vec<Problem> {
    let mut found = Vec::new();
    for tool in &tools.tools {
        let mut told = Vec::new();
        for (pointer, name) in shown(tool) {
            let is_told = !is_secret(name) || tools.secrets.iter().any(|secret| secret == name);
            if is_told || told.contains(&name) {
                continue;
            }
            told.push(name);
            let place = tree.place(&["tools", &tool.name], pointer);
            let message = format!("the value of {name} is not masked here");
            let hint = format!("name it under `secrets`: `secrets: [{name}]`");
            found.push(Problem::warning(place, message, "").with_hint(hint));
        }
    }
    found
}

/// The variables of a tool that its credentials are not made of, and where they stand in it.
fn shown(tool: &Tool) -> Vec<(&'static str, &str)> {
    let mut templates: Vec<(&'static str, &Template)> = Vec::new();
    let mut passed = Vec::new();
    match &tool.backing {
        None | Some(Backing::Builtin(_)) => {}
        Some(Backing::Command(command)) => {
            let names = command.pass_env.iter();
            passed.extend(names.map(|name| ("/command/pass_env", name.as_str())));
        }
        Some(Backing::Http(http)) => {
            templates.push(("/http/url", &http.url));
            templates.extend(http.proxy.iter().map(|proxy| ("/http/proxy", proxy)));
            if let Body::Json(body) = &http.body {
                let mut parts = Vec::new();
                body_templates(body, &mut parts);
                templates.extend(parts.into_iter().map(|part| ("/http/body", part)));
            }
        }
        Some(Backing::Agent(agent)) => {
            templates.push(("/agent/endpoint", &agent.endpoint));
            templates.extend(agent.system.iter().map(|text| ("/agent/system", text)));
            templates.extend(agent.prompt.iter().map(|text| ("/agent/prompt", text)));
        }
    }
    let names = templates.into_iter();
    let names = names.flat_map(|(place, part)| part.env_names().map(move |name| (place, name)));
    names.chain(passed).collect()
}

/// Whether a name says so.
fn is_secret(name: &str) -> bool {
    let mut words = name.split('_');
    words.any(|word| WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    use crate::tools_file::resolve::load;

    /// FAULTS 131: what nothing masks is said before it is told.
    #[test]
    fn a_secret_that_nothing_masks_is_warned_about() {
        let text = r#"secrets: [NAMED_TOKEN]
tools:
  a: {input_schema: {type: object}, http: {url: "${BASE}/${API_KEY}/${NAMED_TOKEN}", method: POST, body: {x: ["${API_KEY:-d}", "${DB_PASSWORD}"]}}}
  b: {input_schema: {type: object}, http: {url: "https://a.b/${In_Header_Key}", headers: {x-key: "${In_Header_Key}"}}}
  c: {input_schema: {type: object}, command: {argv: [cat], pass_env: [HOME, My_Secret, MONKEY], env: {X: "${MASKED_TOKEN}"}}}
  e: {input_schema: {type: object}, agent: {endpoint: "https://a.b/${CREDENTIAL}", api_key: "${E_KEY}", model: m, system: "${S_TOKEN} ${E_KEY} ${MAX_TOKENS}", prompt: "${P_TOKEN}"}}
"#;
        let loaded = load(text, Path::new("/"), Path::new("/"));
        let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
        let found: Vec<(String, &str)> = used(&tools, &tree)
            .into_iter()
            .map(|problem| {
                let behind = &text[problem.span.start..];
                let name = problem.message.replace("the value of ", "");
                let name = name.replace(" is not masked here", "");
                (
                    name,
                    behind.split([' ', ':', '/']).next().unwrap_or_default(),
                )
            })
            .collect();
        let expected = [
            ("API_KEY", "\"${BASE}"),
            ("DB_PASSWORD", "body"),
            ("My_Secret", "pass_env"),
            ("CREDENTIAL", "\"https"),
            ("S_TOKEN", "\"${S_TOKEN}"),
            ("P_TOKEN", "\"${P_TOKEN}\"}}\n"),
        ];
        let expected = expected.map(|(name, at)| (name.to_owned(), at));
        assert_eq!(found, expected);
    }
}
