//! Turns values of a configuration into templates of tools.yaml, without the secrets among them.

use crate::client_config::secrets::looks_secret;
use crate::template::is_variable_name;

/// Returns the template for a variable. A value that may be a secret comes from toolq's own environment.
pub(super) fn env_template(variable: &str, value: &str) -> String {
    value_template(variable, value).unwrap_or_else(|| format!("${{{variable}}}"))
}

/// Returns the template for a value. Returns `None` if the value may be secret, or has a reference within a text.
pub(super) fn value_template(name: &str, value: &str) -> Option<String> {
    let value = resolve_references(value);
    if let Some(template) = reference_template(name, &value) {
        return Some(template);
    }
    let is_copied = !looks_secret(name, &value) && !value.contains("${");
    is_copied.then(|| escape_placeholders(&value))
}

/// Returns the template for a value that is nothing but a reference. A default that may be secret is dropped.
fn reference_template(name: &str, value: &str) -> Option<String> {
    let inner = value.strip_prefix("${")?.strip_suffix('}')?;
    let (variable, default) = inner.split_once(":-").unwrap_or((inner, ""));
    if !is_variable_name(variable) || default.contains("${") {
        return None;
    }
    let keeps_default = !default.is_empty() && !looks_secret(name, default);
    Some(if keeps_default {
        value.to_owned()
    } else {
        format!("${{{variable}}}")
    })
}

/// Doubles braces that would be placeholders in tools.yaml.
pub(super) fn escape_placeholders(text: &str) -> String {
    let mut escaped = String::new();
    for (index, c) in text.char_indices() {
        if c == '{' && is_placeholder(&text[index + 1..]) {
            escaped.push('{');
        }
        escaped.push(c);
    }
    escaped
}

/// Whether what follows a brace makes it a placeholder: `name}`, `a.b?}`, `list...}`.
fn is_placeholder(rest: &str) -> bool {
    let inner = rest.split_once('}').map(|(inner, _)| inner);
    let name = inner.map(|inner| inner.trim_end_matches(['?', '.']));
    name.is_some_and(|name| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty() && name.chars().all(is_part)
    })
}

/// Replaces references that only other programs can resolve: `${workspaceFolder}`, `${env:NAME}`.
pub(super) fn resolve_references(text: &str) -> String {
    let mut resolved = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let reference = &rest[start + 2..start + length];
        resolved.push_str(&rest[..start]);
        match reference.split_once(':') {
            None if reference == "workspaceFolder" => resolved.push('.'),
            Some(("env", name)) => resolved += &["${", name, "}"].concat(),
            _ => resolved.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    resolved + rest
}
