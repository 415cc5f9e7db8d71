//! Headers of requests to a server, compared with the body that they repeat: a gateway may have trusted them.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::NAME_HEADER;
use crate::http::param_headers::{ParamHeaders, decode_header_value};
use crate::message::RpcError;

/// The largest integer that a float has exactly.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_991.0;

/// The headers of a request.
pub trait PostHeaders {
    /// Returns the value of a header, whose name is in lowercase. Several values are one, joined with commas. Bytes that
    /// aren't text are replaced.
    fn get(&self, name: &str) -> Option<Cow<'_, str>>;
}

/// What the headers of a call repeat.
#[derive(Default, Deserialize)]
struct CallParams<'t> {
    #[serde(default, borrow)]
    name: Option<Cow<'t, str>>,
    #[serde(default, borrow)]
    arguments: Option<&'t RawValue>,
}

/// Checks a header that must be there. `part` says what it repeats.
pub(crate) fn check_header(
    headers: &impl PostHeaders,
    name: &str,
    part: &str,
    expected: &str,
) -> Result<(), RpcError> {
    match headers.get(name) {
        Some(value) if value == expected => Ok(()),
        Some(value) => Err(mismatch(&format!(
            "the header {name} is {value:?}, but {part} says {expected:?}"
        ))),
        None => Err(mismatch(&format!(
            "the header {name} is missing; {part} says {expected:?}"
        ))),
    }
}

/// Checks the headers that repeat the name and the arguments of a call.
pub(crate) fn check_call_headers(
    headers: &impl PostHeaders,
    params: Option<&RawValue>,
    tools: &HashMap<String, ParamHeaders>,
) -> Result<(), RpcError> {
    // Parameters that can't be read are refused when they are read.
    let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let CallParams { name, arguments } = params.unwrap_or_default();
    let Some(tool) = name else {
        return Ok(());
    };
    match header_text(headers, NAME_HEADER)? {
        Some(value) if value == tool => {}
        Some(value) => {
            let why = format!("the header {NAME_HEADER} is {value:?}, but the body calls {tool:?}");
            return Err(mismatch(&why));
        }
        None => {
            let why = format!("the header {NAME_HEADER} is missing; the body calls {tool:?}");
            return Err(mismatch(&why));
        }
    }
    let Some(tool) = tools.get(tool.as_ref()) else {
        return Ok(());
    };
    let arguments = arguments.map(|arguments| tool.of_arguments(arguments));
    let expected: HashMap<String, String> = arguments.into_iter().flatten().collect();
    for (header, is_integer) in tool.names() {
        let expected = expected.get(header).map(String::as_str);
        let is_same = if is_integer {
            is_same_number
        } else {
            is_same_text
        };
        check_param(headers, header, expected, is_same)?;
    }
    Ok(())
}

/// `expected` is the header as a client would send it.
fn check_param(
    headers: &impl PostHeaders,
    name: &str,
    expected: Option<&str>,
    is_same: fn(&str, &str) -> bool,
) -> Result<(), RpcError> {
    let expected = expected.and_then(decode_header_value);
    match (header_text(headers, name)?, expected) {
        (None, None) => Ok(()),
        (Some(value), Some(expected)) if is_same(&value, &expected) => Ok(()),
        (Some(value), Some(expected)) => Err(mismatch(&format!(
            "the header {name} is {value:?}, but the argument is {expected:?}"
        ))),
        (Some(_), None) => Err(mismatch(&format!(
            "the header {name} is there, but its argument isn't"
        ))),
        (None, Some(expected)) => Err(mismatch(&format!(
            "the header {name} is missing; the argument is {expected:?}"
        ))),
    }
}

/// Returns what a header says that may be in Base64.
fn header_text(headers: &impl PostHeaders, name: &str) -> Result<Option<String>, RpcError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match decode_header_value(&value) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(mismatch(&format!("the header {name} has invalid Base64"))),
    }
}

fn is_same_text(value: &str, expected: &str) -> bool {
    value == expected
}

/// Integers may be written differently, such as `42.0`.
fn is_same_number(value: &str, expected: &str) -> bool {
    let is_equal = |value: f64, expected: f64| {
        expected.abs() <= MAX_EXACT_FLOAT && value.total_cmp(&expected).is_eq()
    };
    match (value.parse(), expected.parse()) {
        _ if value == expected => true,
        (Ok(value), Ok(expected)) => is_equal(value, expected),
        _ => false,
    }
}

fn mismatch(why: &str) -> RpcError {
    RpcError::new(RpcError::HEADER_MISMATCH, why)
}
