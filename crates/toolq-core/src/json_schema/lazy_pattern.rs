//! `pattern` in simple schemas: a pattern is compiled when a text is first matched against it. Most calls leave out most of the
//! properties that a tool has, and compiling a class of Unicode letters takes longer than all the rest of a short call.

use std::sync::OnceLock;

use jsonschema::{Draft, Keyword, ValidationError, ValidationOptions, Validator};
use serde_json::{Value, json};

use crate::json_schema::library::SchemaLibrary;
use crate::json_schema::validation_options::validation_options;
use crate::types::FormatPolicy;

/// Compiles each pattern when it is first needed. It has to be evidently valid, since the error of an invalid one isn't
/// reported: no text matches it.
pub(crate) fn with_lazy_patterns(
    options: ValidationOptions<'static>,
) -> ValidationOptions<'static> {
    options.with_keyword("pattern", |_, pattern, _| {
        Ok(Box::new(LazyPattern {
            pattern: pattern.clone(),
            validator: OnceLock::new(),
        }))
    })
}

/// A pattern, as a schema that has nothing else once it is compiled.
struct LazyPattern {
    pattern: Value,
    validator: OnceLock<Option<Validator>>,
}

impl LazyPattern {
    fn validator(&self) -> Option<&Validator> {
        self.validator
            .get_or_init(|| {
                let (library, formats) = (SchemaLibrary::default(), FormatPolicy::Annotate);
                let options = validation_options(library, formats).with_draft(Draft::Draft7);
                options.build(&json!({"pattern": self.pattern})).ok()
            })
            .as_ref()
    }
}

impl<'i> Keyword<'i> for LazyPattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if !value.is_string() {
            return Ok(());
        }
        match self.validator() {
            Some(validator) => validator.validate(value),
            None => Err(ValidationError::custom(
                "must match a pattern that isn't valid",
            )),
        }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let matches = |validator: &Validator| validator.is_valid(value);
        !value.is_string() || self.validator().is_some_and(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ValidationOptions<'static> {
        let options = validation_options(SchemaLibrary::default(), FormatPolicy::Annotate);
        options.with_draft(Draft::Draft7)
    }

    #[test]
    fn a_lazy_pattern_judges_and_explains_as_the_schema_does_that_compiles_it_at_once() {
        let schema = json!({"properties": {
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "mail": {"pattern": "^[^\\s@]+@[^\\s@]+$"},
        }});
        let lazy = with_lazy_patterns(options()).build(&schema).unwrap();
        let eager = options().build(&schema).unwrap();
        for input in [
            json!({}),
            json!({"name": "ab", "mail": "a@b"}),
            json!({"name": "AB", "mail": "a b"}),
            json!({"name": 1, "mail": 1}),
            json!({"name": "é", "mail": "\u{a0}@b"}),
        ] {
            let explain = |validator: &Validator| -> Vec<_> {
                let errors = validator.iter_errors(&input);
                errors
                    .map(|error| {
                        let paths = (
                            error.instance_path().to_string(),
                            error.schema_path().to_string(),
                        );
                        (paths, error.to_string())
                    })
                    .collect()
            };
            assert_eq!(explain(&lazy), explain(&eager), "{input}");
            assert_eq!(lazy.is_valid(&input), eager.is_valid(&input), "{input}");
        }
    }

    #[test]
    fn a_pattern_is_compiled_once_a_text_is_matched_against_it() {
        let pattern = LazyPattern {
            pattern: json!("^a"),
            validator: OnceLock::new(),
        };
        assert!(pattern.is_valid(&json!(1)));
        assert!(pattern.validator.get().is_none());
        assert!(pattern.is_valid(&json!("a")));
        assert!(pattern.validator.get().is_some());
    }

    #[test]
    fn nothing_matches_a_pattern_that_does_not_compile() {
        let pattern = LazyPattern {
            pattern: json!("("),
            validator: OnceLock::new(),
        };
        assert!(!pattern.is_valid(&json!("a")));
        assert!(pattern.validate(&json!("a")).is_err());
        assert!(pattern.validate(&json!(1)).is_ok());
    }
}
