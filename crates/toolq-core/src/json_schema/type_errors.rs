//! Where an input has a value of the wrong type, and which types would do: what coercion may try.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

/// A place whose value has the wrong type.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// JSON pointer into the input.
    pub(crate) pointer: String,
    /// Types that would do.
    pub(crate) types: Vec<JsonType>,
}

/// The places of `input` whose type is wrong, alternatives included.
pub(crate) fn wanted(validator: &Validator, input: &Value) -> Vec<Wanted> {
    let mut found = Vec::new();
    for error in validator.iter_errors(input) {
        collect(&error, &mut found);
    }
    found
}

fn collect(error: &ValidationError<'_>, found: &mut Vec<Wanted>) {
    match error.kind() {
        Kind::Type { kind } => found.push(Wanted {
            pointer: error.instance_path().as_str().to_owned(),
            types: types(kind),
        }),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context
                .iter()
                .flatten()
                .for_each(|error| collect(error, found));
        }
        _ => {}
    }
}

fn types(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(set) => set.iter().collect(),
    }
}
