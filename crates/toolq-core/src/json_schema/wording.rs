//! A broken keyword → its text. It holds what the schema declares, never what the input has.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::text::{MAX_NAME, clipped};

/// Characters of a declared list or pattern.
pub(crate) const MAX_DECLARED: usize = 400;

/// What is wrong, without the value. Missing and unknown keys and alternatives are worded better where their places are
/// known.
pub(crate) fn text(error: &ValidationError<'_>) -> String {
    let kind = error.kind();
    bound(kind)
        .or_else(|| size(kind))
        .unwrap_or_else(|| other(error))
}

fn bound(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        _ => return None,
    })
}

fn size(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::MinLength { limit: 1 }
        | Kind::MinItems { limit: 1 }
        | Kind::MinProperties { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", counted(*limit as u64, "item"))
        }
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "key")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "key")),
        _ => return None,
    })
}

fn other(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => format!(
            "must be {}, not {}",
            type_list(kind),
            type_name(error.instance())
        ),
        Kind::Enum { options } => format!("must be one of {}", listed(options)),
        Kind::Constant { expected_value } => format!(
            "must be {}",
            clipped(&expected_value.to_string(), MAX_DECLARED)
        ),
        Kind::Pattern { pattern } => format!(
            "must match the pattern `{}`",
            clipped(pattern, MAX_DECLARED)
        ),
        Kind::PropertyNames { error } => {
            format!("has a key that is not allowed: a key {}", text(error))
        }
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Contains => {
            "has no item, or not the right number of items, of the form that it must contain"
                .to_owned()
        }
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "matches several forms of which exactly one must match".to_owned()
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!(
                "matches none of the {} forms that are allowed",
                context.len()
            )
        }
        Kind::Required { property } => {
            format!("has no key {}", clipped(&property.to_string(), MAX_NAME))
        }
        kind => format!("breaks `{}` of the schema", kind.keyword()),
    }
}

fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn listed(options: &Value) -> String {
    let each: Vec<String> = options
        .as_array()
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    clipped(&each.join(", "), MAX_DECLARED)
}

pub(crate) fn type_list(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.as_str().to_owned(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<&str> = set.iter().map(jsonschema::JsonType::as_str).collect();
            names.sort_by_key(|name| *name == "null");
            names.join(" or ")
        }
    }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
