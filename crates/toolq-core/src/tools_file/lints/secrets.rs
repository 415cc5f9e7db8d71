//! Warns about secrets that could leak: names under `secrets` that mask nothing, and variables that look like secrets
//! but aren't masked.

use redact::Mask;

use crate::os::Environment;
use crate::tools_file::yaml::YamlNode;
use crate::types::{
    Backing, BodyTemplate, FileProblem, RequestBody, Span, Template, Tool, ToolsConfig,
};

/// Words in the name of a variable that suggest that its value is a secret.
const SECRET_NAME_WORDS: [&str; 8] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Returns warnings about names under `secrets` that mask nothing because the variable is misspelled, unset, empty, or
/// so short that masking it would hide unrelated text.
pub(crate) fn ineffective_secret_warnings(
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut found = Vec::new();
    for (name, span) in tree.texts_at(&["secrets"]) {
        let value = environment.get_os(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is unset or empty, so nothing is masked");
            (
                message,
                "`secrets` lists names of environment variables; check the spelling",
            )
        } else if value.len() < Mask::MIN_SECRET_BYTES {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked, since that would hide unrelated text",
            )
        } else {
            continue;
        };
        found.push(FileProblem::warning(span, message, "").with_hint(hint));
    }
    found
}

/// Returns warnings about variables that look like secrets but are used where values aren't masked automatically, one
/// per variable and tool.
pub(crate) fn unmasked_variable_warnings(tools: &ToolsConfig, tree: &YamlNode) -> Vec<FileProblem> {
    let mut found = Vec::new();
    let is_masked = |name: &str| {
        tools.secrets.iter().any(|secret| secret == name) || tools.env_file.get(name).is_some()
    };
    let warning = |name: &str, span: Span| {
        let message = format!("the value of {name} is not masked here");
        let hint = format!("add it to `secrets`: `secrets: [{name}]`");
        FileProblem::warning(span, message, "").with_hint(hint)
    };
    let defaults = tree.texts_at(&["defaults", "pass_env"]);
    for (name, span) in &defaults {
        if looks_secret(name) && !is_masked(name) {
            found.push(warning(name, *span));
        }
    }
    for tool in &tools.tools {
        let mut reported = Vec::new();
        for (pointer, name) in exposed_variables(tool) {
            let is_default = defaults.iter().any(|(known, _)| *known == name);
            let is_harmless = !looks_secret(name) || is_masked(name) || is_default;
            if is_harmless || reported.contains(&name) {
                continue;
            }
            reported.push(name);
            found.push(warning(name, tree.span_at(&["tools", &tool.name], pointer)));
        }
    }
    found
}

/// Returns the variables that a tool uses outside of its credentials, each with the JSON pointer to where it is used.
fn exposed_variables(tool: &Tool) -> Vec<(&'static str, &str)> {
    let mut templates: Vec<(&'static str, &Template)> = Vec::new();
    let mut passed = Vec::new();
    match &tool.backing {
        None | Some(Backing::Builtin(_) | Backing::Host) => {}
        Some(Backing::Command(command)) => {
            let names = command.pass_env.iter();
            passed.extend(names.map(|name| ("/command/pass_env", name.as_str())));
        }
        Some(Backing::Http(http)) => {
            templates.push(("/http/url", &http.url));
            templates.extend(http.proxy.iter().map(|proxy| ("/http/proxy", proxy)));
            if let RequestBody::Json(body) = &http.body {
                let parts = body.templates().into_iter();
                templates.extend(parts.map(|part| ("/http/body", part)));
            }
        }
        Some(Backing::Mcp(mcp)) => {
            let parts = mcp.arguments.iter().flat_map(BodyTemplate::templates);
            templates.extend(parts.map(|part| ("/mcp/arguments", part)));
        }
        Some(Backing::Agent(agent)) => {
            templates.push(("/agent/endpoint", &agent.endpoint));
            templates.push(("/agent/model", &agent.model));
            let fallback = agent.fallback_model.iter();
            templates.extend(fallback.map(|model| ("/agent/fallback_model", model)));
            templates.extend(agent.system.iter().map(|text| ("/agent/system", text)));
            templates.extend(agent.prompt.iter().map(|text| ("/agent/prompt", text)));
        }
    }
    templates
        .into_iter()
        .flat_map(|(pointer, part)| part.env_names().map(move |name| (pointer, name)))
        .chain(passed)
        .collect()
}

/// Whether the name of a variable suggests that its value is a secret.
fn looks_secret(name: &str) -> bool {
    name.split('_').any(|word| {
        SECRET_NAME_WORDS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    use crate::tools_file::load::parse_tools_file;

    /// An unmasked secret is reported by `check`, before it can leak.
    #[test]
    fn unmasked_secrets_are_warned_about() {
        let text = r#"secrets: [NAMED_TOKEN]
tools:
  a: {input_schema: {type: object}, http: {url: "${BASE}/${API_KEY}/${NAMED_TOKEN}", method: POST, body: {x: ["${API_KEY:-d}", "${DB_PASSWORD}"]}}}
  b: {input_schema: {type: object}, http: {url: "https://a.b/${In_Header_Key}", headers: {x-key: "${In_Header_Key}"}}}
  c: {input_schema: {type: object}, command: {argv: [cat], pass_env: [HOME, My_Secret, MONKEY], env: {X: "${MASKED_TOKEN}"}}}
  e: {input_schema: {type: object}, agent: {endpoint: "https://a.b/${CREDENTIAL}", api_key: "${E_KEY}", model: "${M_TOKEN}", fallback_model: "${F_TOKEN}", system: "${S_TOKEN} ${E_KEY} ${MAX_TOKENS}", prompt: "${P_TOKEN}"}}
"#;
        let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
        let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
        let found: Vec<(String, &str)> = unmasked_variable_warnings(&tools, &tree)
            .into_iter()
            .map(|problem| {
                let after = &text[problem.span.start..];
                let name = problem.message.replace("the value of ", "");
                let name = name.replace(" is not masked here", "");
                (
                    name,
                    after.split([' ', ':', '/']).next().unwrap_or_default(),
                )
            })
            .collect();
        let expected = [
            ("API_KEY", "\"${BASE}"),
            ("DB_PASSWORD", "body"),
            ("My_Secret", "pass_env"),
            ("CREDENTIAL", "\"https"),
            ("M_TOKEN", "\"${M_TOKEN}\","),
            ("F_TOKEN", "\"${F_TOKEN}\","),
            ("S_TOKEN", "\"${S_TOKEN}"),
            ("P_TOKEN", "\"${P_TOKEN}\"}}\n"),
        ];
        let expected = expected.map(|(name, at)| (name.to_owned(), at));
        assert_eq!(found, expected);
    }
}
