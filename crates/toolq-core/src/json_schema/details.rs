//! An input that fails → one line a problem. No line holds the input's values: they may be secrets, or megabytes.

use std::fmt::Write as _;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::json_schema::walk::escaped;
use crate::json_schema::wording::{MAX_DECLARED, text, type_list, type_name};
use crate::text::{MAX_NAME, clipped, nearest};
use crate::types::Detail;

/// Problems that are named; the rest is counted.
const MAX_DETAILS: usize = 50;

/// Every problem of `input`; empty where it is valid.
pub(crate) fn details(validator: &Validator, declared: &Value, input: &Value) -> Vec<Detail> {
    let mut problems = Problems {
        declared,
        input,
        named: Vec::new(),
        more: 0,
    };
    for error in validator.iter_errors(input) {
        problems.add(&error);
    }
    if problems.more > 0 {
        let more = problems.more;
        problems.named.push(Detail {
            path: String::new(),
            message: format!(
                "and {more} more problem{}",
                if more == 1 { "" } else { "s" }
            ),
        });
    }
    problems.named
}

type Errors = [ValidationError<'static>];

/// What was found so far.
struct Problems<'d> {
    declared: &'d Value,
    input: &'d Value,
    named: Vec<Detail>,
    more: usize,
}

impl Problems<'_> {
    fn name(&mut self, path: &str, message: impl FnOnce() -> String) {
        if self.named.len() == MAX_DETAILS {
            self.more += 1;
            return;
        }
        self.named.push(Detail {
            path: clipped(path, MAX_NAME),
            message: message(),
        });
    }

    fn add(&mut self, error: &ValidationError<'_>) {
        let path = error.instance_path().as_str();
        match error.kind() {
            Kind::Required { property } => {
                let name = escaped(property.as_str().unwrap_or_default());
                self.name(&format!("{path}/{name}"), || "is required".to_owned());
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                self.not_allowed(path, unexpected, &known_names(error, self.declared));
            }
            // No key is declared at all: the error doesn't name those that are there.
            Kind::FalseSchema
                if error
                    .schema_path()
                    .as_str()
                    .ends_with("/additionalProperties") =>
            {
                let object = self.input.pointer(path).and_then(Value::as_object);
                self.not_allowed(
                    path,
                    object.into_iter().flat_map(|object| object.keys()),
                    &[],
                );
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                match meant(path, context) {
                    Some(errors) => errors.iter().for_each(|error| self.add(error)),
                    None => self.name(path, || no_alternative(error, context)),
                }
            }
            _ => self.name(path, || text(error)),
        }
    }

    fn not_allowed<'n>(
        &mut self,
        path: &str,
        unexpected: impl IntoIterator<Item = &'n String>,
        known: &[&str],
    ) {
        for name in unexpected {
            let place = format!("{path}/{}", escaped(name));
            self.name(&place, || not_allowed(name, known));
        }
    }
}

/// The problems of the one alternative that was meant: that which takes a value of this type and, where several do, whose
/// constants fit.
fn meant<'e>(path: &str, alternatives: &'e [Vec<ValidationError<'static>>]) -> Option<&'e Errors> {
    let takes_type = |errors: &Errors| {
        let here = |error: &ValidationError<'_>| error.instance_path().as_str() == path;
        !errors
            .iter()
            .any(|error| here(error) && matches!(error.kind(), Kind::Type { .. }))
    };
    let takes_constants = |errors: &Errors| {
        let fixed = |kind: &Kind| matches!(kind, Kind::Constant { .. } | Kind::Enum { .. });
        takes_type(errors) && !errors.iter().any(|error| fixed(error.kind()))
    };
    let only = |fits: &dyn Fn(&Errors) -> bool| {
        let mut fitting = alternatives
            .iter()
            .map(Vec::as_slice)
            .filter(|errors| fits(errors));
        fitting.next().filter(|_| fitting.next().is_none())
    };
    only(&takes_type).or_else(|| only(&takes_constants))
}

/// The types that would do, where none of the alternatives takes this one.
fn no_alternative(
    error: &ValidationError<'_>,
    alternatives: &[Vec<ValidationError<'static>>],
) -> String {
    let here = error.instance_path();
    let mut types: Vec<String> = Vec::new();
    for errors in alternatives {
        let wrong = errors.iter().find_map(|error| match error.kind() {
            Kind::Type { kind } if error.instance_path() == here => Some(type_list(kind)),
            _ => None,
        });
        match wrong {
            Some(name) if !types.contains(&name) => types.push(name),
            Some(_) => {}
            None => return text(error),
        }
    }
    format!(
        "must be {}, not {}",
        types.join(" or "),
        type_name(error.instance())
    )
}

/// The names that the schema beside `additionalProperties` declares.
fn known_names<'d>(error: &ValidationError<'_>, declared: &'d Value) -> Vec<&'d str> {
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

fn not_allowed(name: &str, known: &[&str]) -> String {
    let mut message = "is not allowed".to_owned();
    if let Some(near) = nearest(name, known.iter().copied()) {
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
            clipped(&known.join(", "), MAX_DECLARED)
        );
    }
    message
}
