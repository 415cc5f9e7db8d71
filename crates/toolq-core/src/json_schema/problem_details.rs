//! Lists the problems of an invalid input, one line each. No line contains the input's values: they may be secret, or
//! megabytes long.

use std::fmt::{Debug, Write as _};

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use crate::json::escape_pointer_token;
use crate::text::{MAX_NAME_CHARS, format_count, suggest_name, truncate};

/// One problem with an input.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProblemDetail {
    /// JSON pointer into the input. An empty pointer is the whole input.
    pub path: String,
    /// What is wrong there. Never contains the value itself.
    pub message: String,
    /// The keyword of `input_schema` that the input violates, if it is about the schema.
    pub keyword: Option<String>,
    /// JSON pointer into the schema, to that keyword.
    pub schema_path: Option<String>,
}

impl ProblemDetail {
    /// Creates a problem that no keyword of the schema is about.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            keyword: None,
            schema_path: None,
        }
    }
}

/// The bytes after which no more problems are listed; the rest are counted. What one call can be told doesn't grow with its
/// input, of which there may be thousands.
const MAX_LISTED_BYTES: usize = 2_000;

const ADDITIONAL_PROPERTIES: &str = "additionalProperties";

/// Lists every problem of `input`; empty if it is valid.
pub(crate) fn collect_problem_details(
    validator: &Validator,
    declared: &Value,
    input: &Value,
) -> Vec<ProblemDetail> {
    let mut collector = SchemaProblemCollector {
        schema: declared,
        input,
        details: Vec::new(),
        listed_bytes: 0,
        omitted: 0,
    };
    for error in validator.iter_errors(input) {
        collector.add_error(&error);
    }
    if collector.omitted > 0 {
        let more = collector.omitted;
        let message = format!("and {}", format_count(more as u64, "more problem"));
        collector.details.push(ProblemDetail::new("", message));
    }
    collector.details
}

type AlternativeErrors = [ValidationError<'static>];

/// Collects the problems of an input.
struct SchemaProblemCollector<'d> {
    schema: &'d Value,
    input: &'d Value,
    details: Vec<ProblemDetail>,
    listed_bytes: usize,
    omitted: usize,
}

impl SchemaProblemCollector<'_> {
    fn push_detail(
        &mut self,
        path: &str,
        error: &ValidationError<'_>,
        message: impl FnOnce() -> String,
    ) {
        if self.listed_bytes >= MAX_LISTED_BYTES {
            self.omitted += 1;
            return;
        }
        let (path, message) = (truncate(path, MAX_NAME_CHARS), message());
        self.listed_bytes += path.len() + message.len();
        self.details.push(ProblemDetail {
            path,
            message,
            keyword: Some(keyword(error).to_owned()),
            schema_path: Some(error.schema_path().as_str().to_owned()),
        });
    }

    fn add_error(&mut self, error: &ValidationError<'_>) {
        let path = error.instance_path().as_str();
        match error.kind() {
            Kind::Required { property } => {
                let name = escape_pointer_token(property.as_str().unwrap_or_default());
                self.push_detail(&format!("{path}/{name}"), error, || {
                    "is required".to_owned()
                });
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                self.add_unexpected_keys(
                    path,
                    error,
                    unexpected,
                    &declared_properties(error, self.schema),
                );
            }
            // No keys are declared at all, so the error doesn't name the unexpected ones.
            Kind::FalseSchema if keyword(error) == ADDITIONAL_PROPERTIES => {
                let object = self.input.pointer(path).and_then(Value::as_object);
                self.add_unexpected_keys(
                    path,
                    error,
                    object.into_iter().flat_map(|object| object.keys()),
                    &[],
                );
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                match find_intended_alternative(path, context) {
                    Some(errors) => errors.iter().for_each(|error| self.add_error(error)),
                    None => {
                        self.push_detail(path, error, || no_alternative_message(error, context));
                    }
                }
            }
            _ => self.push_detail(path, error, || error_message(error)),
        }
    }

    fn add_unexpected_keys<'n>(
        &mut self,
        path: &str,
        error: &ValidationError<'_>,
        unexpected: impl IntoIterator<Item = &'n String>,
        known: &[&str],
    ) {
        for name in unexpected {
            let pointer = format!("{path}/{}", escape_pointer_token(name));
            self.push_detail(&pointer, error, || unexpected_key_message(name, known));
        }
    }
}

/// Returns the keyword that an error is about.
fn keyword<'e>(error: &'e ValidationError<'_>) -> &'e str {
    let is_of_keys = error
        .schema_path()
        .as_str()
        .ends_with("/additionalProperties");
    match error.kind() {
        Kind::FalseSchema if is_of_keys => ADDITIONAL_PROPERTIES,
        kind => kind.keyword(),
    }
}

/// Returns the problems of the one alternative that was meant: the one that accepts a value of this type and, if
/// several do, whose constants match.
fn find_intended_alternative<'e>(
    path: &str,
    alternatives: &'e [Vec<ValidationError<'static>>],
) -> Option<&'e AlternativeErrors> {
    let accepts_type = |errors: &AlternativeErrors| {
        let here = |error: &ValidationError<'_>| error.instance_path().as_str() == path;
        !errors
            .iter()
            .any(|error| here(error) && matches!(error.kind(), Kind::Type { .. }))
    };
    let accepts_constants = |errors: &AlternativeErrors| {
        let fixed = |kind: &Kind| matches!(kind, Kind::Constant { .. } | Kind::Enum { .. });
        accepts_type(errors) && !errors.iter().any(|error| fixed(error.kind()))
    };
    let find_only_match = |fits: &dyn Fn(&AlternativeErrors) -> bool| {
        let mut fitting = alternatives
            .iter()
            .map(Vec::as_slice)
            .filter(|errors| fits(errors));
        fitting.next().filter(|_| fitting.next().is_none())
    };
    find_only_match(&accepts_type).or_else(|| find_only_match(&accepts_constants))
}

/// Lists the types that would be valid, if no alternative accepts this one.
fn no_alternative_message(
    error: &ValidationError<'_>,
    alternatives: &[Vec<ValidationError<'static>>],
) -> String {
    let here = error.instance_path();
    let mut types: Vec<String> = Vec::new();
    for errors in alternatives {
        let wrong = errors.iter().find_map(|error| match error.kind() {
            Kind::Type { kind } if error.instance_path() == here => Some(format_types(kind)),
            _ => None,
        });
        match wrong {
            Some(name) if !types.contains(&name) => types.push(name),
            Some(_) => {}
            None => return error_message(error),
        }
    }
    format!(
        "must be {}, not {}",
        types.join(" or "),
        describe_found_type(error.instance())
    )
}

/// Returns the property names declared alongside `additionalProperties`.
fn declared_properties<'d>(error: &ValidationError<'_>, declared: &'d Value) -> Vec<&'d str> {
    let keyword = error.schema_path().as_str();
    let Some((parent, _)) = keyword.rsplit_once('/') else {
        return Vec::new();
    };
    let properties = declared
        .pointer(parent)
        .and_then(|schema| schema.get("properties"));
    let names = properties
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|names| names.keys());
    names.map(String::as_str).collect()
}

fn unexpected_key_message(name: &str, known: &[&str]) -> String {
    let mut message = "is not allowed".to_owned();
    if let Some(near) = suggest_name(name, known.iter().copied()) {
        let _ = write!(message, "; did you mean `{near}`?");
    }
    if !known.is_empty() {
        let start = if message.ends_with('?') {
            " Known"
        } else {
            "; known"
        };
        let _ = write!(
            message,
            "{start}: {}",
            truncate(&known.join(", "), MAX_DECLARED_CHARS)
        );
    }
    message
}

// Finds values of the wrong type, and the types that would be valid: what coercion may try.

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

// Turns validation errors into messages. Messages contain what the schema declares, never the input's values.

/// Maximum length of a declared list or pattern in a message, in characters.
const MAX_DECLARED_CHARS: usize = 400;

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
        kind => format!("violates `{}` of the schema", kind.keyword()),
    }
}

fn format_options(options: &[Value]) -> String {
    let each: Vec<String> = options.iter().map(ToString::to_string).collect();
    truncate(&each.join(", "), MAX_DECLARED_CHARS)
}

fn format_types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.as_str().to_owned(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<&str> = set.iter().map(JsonType::as_str).collect();
            names.sort_by_key(|name| *name == "null");
            names.join(" or ")
        }
    }
}

/// Names the type of a value that should have another. Models write `null` for what they don't want to give.
fn describe_found_type(value: &Value) -> &'static str {
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
