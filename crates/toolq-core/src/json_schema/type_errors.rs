//! Finds values of the wrong type, and the types that would be valid: what coercion may try.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

/// A value of the wrong type.
#[derive(Debug)]
pub(crate) struct TypeError {
    /// JSON pointer into the input.
    pub(crate) pointer: String,
    /// Types that would be valid.
    pub(crate) allowed_types: Vec<JsonType>,
}

/// Finds the values of `input` with the wrong type, also inside alternatives.
pub(crate) fn find_type_errors(validator: &Validator, input: &Value) -> Vec<TypeError> {
    let mut found = Vec::new();
    for error in validator.iter_errors(input) {
        collect_type_errors(&error, &mut found);
    }
    found
}

fn collect_type_errors(error: &ValidationError<'_>, found: &mut Vec<TypeError>) {
    match error.kind() {
        Kind::Type { kind } => found.push(TypeError {
            pointer: error.instance_path().as_str().to_owned(),
            allowed_types: list_types(kind),
        }),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context
                .iter()
                .flatten()
                .for_each(|error| collect_type_errors(error, found));
        }
        _ => {}
    }
}

fn list_types(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(set) => set.iter().collect(),
    }
}
