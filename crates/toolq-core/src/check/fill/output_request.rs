//! Reads the input of `read_output`.

use regex::bytes::{Regex, RegexBuilder};

use crate::json::Input;
use crate::types::{OutputRequest, ProblemDetail};

/// Maximum size of a compiled pattern in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Returns what a call asks for.
///
/// # Errors
/// The pattern isn't a regular expression that can be matched in linear time.
pub(super) fn read_request(input: &Input) -> Result<OutputRequest, ProblemDetail> {
    let value = input.to_value();
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    // The schema takes any number without a fraction, such as `1e3`.
    let number = |name: &str| {
        let number = &value[name];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the schema refuses negative numbers, and larger ones are beyond every output"
        )]
        number
            .as_u64()
            .or(number.as_f64().map(|number| number as u64))
    };
    let pattern = text("pattern").map(|pattern| compile_pattern(&pattern));
    let pattern = pattern.transpose().map_err(|why| {
        let message = format!("isn't a regular expression: {why}");
        ProblemDetail::new("/pattern", message)
    })?;
    Ok(OutputRequest {
        id: text("id").unwrap_or_default(),
        offset: number("offset").unwrap_or_default(),
        limit: number("limit"),
        pattern,
    })
}

/// Compiles a pattern in which `^` and `$` match at the ends of lines.
fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .size_limit(MAX_PATTERN_BYTES)
        .build();
    compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        error => error
            .to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned(),
    })
}
