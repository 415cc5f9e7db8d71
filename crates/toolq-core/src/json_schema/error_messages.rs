//! Turns validation errors into messages. Messages contain what the schema declares, never the input's values.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::text::{MAX_NAME_CHARS, format_count, truncate};

/// Maximum length of a declared list or pattern in a message, in characters.
pub(crate) const MAX_DECLARED_CHARS: usize = 400;

/// Describes an error without the value. Where the location is known, missing keys, unknown keys and alternatives get
/// more specific messages than these.
pub(crate) fn error_message(error: &ValidationError<'_>) -> String {
    let kind = error.kind();
    bound_message(kind)
        .or_else(|| size_message(kind))
        .unwrap_or_else(|| other_message(error))
}

fn bound_message(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        _ => return None,
    })
}

fn size_message(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::MinLength { limit: 1 }
        | Kind::MinItems { limit: 1 }
        | Kind::MinProperties { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => {
            format!("must have at least {}", format_count(*limit, "character"))
        }
        Kind::MaxLength { limit } => {
            format!("must have at most {}", format_count(*limit, "character"))
        }
        Kind::MinItems { limit } => format!("must have at least {}", format_count(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", format_count(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", format_count(*limit as u64, "item"))
        }
        Kind::MinProperties { limit } => {
            format!("must have at least {}", format_count(*limit, "key"))
        }
        Kind::MaxProperties { limit } => {
            format!("must have at most {}", format_count(*limit, "key"))
        }
        _ => return None,
    })
}

fn other_message(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => format!(
            "must be {}, not {}",
            format_types(kind),
            describe_found_type(error.instance())
        ),
        Kind::Enum { options } => format!(
            "must be one of {}",
            format_options(options.as_array().map_or(&[], Vec::as_slice))
        ),
        Kind::Constant { expected_value } => format!(
            "must be {}",
            truncate(&expected_value.to_string(), MAX_DECLARED_CHARS)
        ),
        Kind::Pattern { pattern } => format!(
            "must match the pattern `{}`",
            truncate(pattern, MAX_DECLARED_CHARS)
        ),
        Kind::PropertyNames { error } => {
            format!("has an invalid key: a key {}", error_message(error))
        }
        Kind::Format { format } => format!("must have the format `{format}`"),
        Kind::UniqueItems => "must not contain duplicate items".to_owned(),
        Kind::Contains => {
            "doesn't contain the required number of items that match `contains`".to_owned()
        }
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Not { .. } => "must not match the schema in `not`".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "matches more than one of the allowed forms; exactly one must match".to_owned()
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("matches none of the {} allowed forms", context.len())
        }
        Kind::Required { property } => {
            format!(
                "is missing the key {}",
                truncate(&property.to_string(), MAX_NAME_CHARS)
            )
        }
        Kind::Custom { message, .. } => message.clone(),
        kind => format!("violates `{}` of the schema", kind.keyword()),
    }
}

pub(crate) fn format_options(options: &[Value]) -> String {
    let each: Vec<String> = options.iter().map(ToString::to_string).collect();
    truncate(&each.join(", "), MAX_DECLARED_CHARS)
}

pub(crate) fn format_types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.as_str().to_owned(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<&str> = set.iter().map(jsonschema::JsonType::as_str).collect();
            names.sort_by_key(|name| *name == "null");
            names.join(" or ")
        }
    }
}

/// Names the type of a value that should have another. Models write `null` for what they don't want to give.
pub(crate) fn describe_found_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null (leave it out if it is optional)",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
