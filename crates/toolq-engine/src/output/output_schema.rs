//! Holds JSON against an output schema.

use serde_json::Value;

use toolq_core::json_schema::CompiledSchema;

/// Checks JSON that may be shown up to `max_bytes`: if it were cut, it would match no schema.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn check(schema: &CompiledSchema, json: &str, max_bytes: u64) -> Result<(), String> {
    let bytes = json.len();
    if bytes as u64 > max_bytes {
        return Err(format!(
            "the output has {bytes} bytes, more than max_output ({max_bytes}), and can't be cut since it has a schema"
        ));
    }
    match find_violation(schema, json, "output") {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

/// Returns how JSON, which is called `noun` there, violates a schema.
pub(crate) fn find_violation(schema: &CompiledSchema, json: &str, noun: &str) -> Option<String> {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return Some(format!("the {noun} is nested too deeply"));
    };
    let problems = schema.problem_details(&value);
    let first = problems.first()?;
    let place = match first.path.as_str() {
        "" => format!("the {noun}"),
        path => format!("{path} of the {noun}"),
    };
    let message = &first.message;
    Some(format!("{place} violates the output schema: {message}"))
}
