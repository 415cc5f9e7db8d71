//! Fills environment variables into texts and JSON whose other values are known.

use std::sync::Arc;

use serde_json::value::RawValue;

use toolq_core::os::Environment;
use toolq_core::types::{Outcome, PartialJson, PartialTemplate, Template};

/// Returns the text.
///
/// # Errors
/// The outcome of the call, because a variable isn't set.
pub(crate) fn resolve_text(
    template: &PartialTemplate,
    environment: &Environment,
) -> Result<String, Outcome> {
    let resolved = template.resolve(&|name| environment.get(name));
    resolved.map_err(Outcome::MissingVariable)
}

/// Returns the JSON as text. Numbers keep their digits.
///
/// # Errors
/// The outcome of the call, because a variable isn't set.
pub(crate) fn resolve_json(
    template: &PartialJson,
    environment: &Environment,
) -> Result<String, Outcome> {
    let mut text = String::new();
    write_json(template, environment, &mut text)?;
    Ok(text)
}

/// Returns the JSON as a raw value. What comes from the input as it is isn't read again.
///
/// # Errors
/// The outcome of the call, because a variable isn't set.
pub(crate) fn resolve_raw(
    template: &PartialJson,
    environment: &Environment,
) -> Result<Arc<RawValue>, Outcome> {
    if let PartialJson::Raw(raw) = template {
        return Ok(Arc::clone(raw));
    }
    let json = resolve_json(template, environment)?;
    RawValue::from_string(json)
        .map(Arc::from)
        .map_err(|error| Outcome::InternalError(error.to_string()))
}

fn write_json(
    template: &PartialJson,
    environment: &Environment,
    text: &mut String,
) -> Result<(), Outcome> {
    match template {
        PartialJson::Raw(raw) => text.push_str(raw.get()),
        PartialJson::Text(template) => {
            push_json_string(&resolve_text(template, environment)?, text);
        }
        PartialJson::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                push_separator(index, text);
                write_json(item, environment, text)?;
            }
            text.push(']');
        }
        PartialJson::Object(members) => {
            text.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                push_separator(index, text);
                push_json_string(name, text);
                text.push(':');
                write_json(value, environment, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

fn push_separator(index: usize, text: &mut String) {
    if index > 0 {
        text.push(',');
    }
}

fn push_json_string(value: &str, text: &mut String) {
    text.push_str(&serde_json::Value::from(value).to_string());
}

/// Resolves a template of tools.yaml that uses no values of the input.
///
/// # Errors
/// The outcome of the call, because a variable is missing.
pub(crate) fn resolve_template(
    template: &Template,
    environment: &Environment,
) -> Result<String, Outcome> {
    resolve_text(&template.without_values(), environment)
}

/// Like [`resolve_template`], for a template that may be left out.
///
/// # Errors
/// As [`resolve_template`].
pub(crate) fn resolve_optional(
    template: Option<&Template>,
    environment: &Environment,
) -> Result<Option<String>, Outcome> {
    let resolved = template.map(|template| resolve_template(template, environment));
    resolved.transpose()
}
