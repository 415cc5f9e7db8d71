//! Arguments of a tool that are repeated in headers, as `x-mcp-header` in its schema says.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::NAME_HEADER;
use crate::message::RpcError;

/// The key of a property's schema that names its header.
const HEADER_KEY: &str = "x-mcp-header";
/// The keyword that leads to the schemas of an object's members.
const PROPERTIES_KEY: &str = "properties";
/// Keywords whose values are data, so that nothing in them is a schema.
const DATA_KEYS: [&str; 4] = ["const", "default", "enum", "examples"];

/// The headers that repeat arguments of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<ParamHeader>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    /// The whole name, in lowercase.
    name: String,
    /// The keys that lead to the argument.
    path: Vec<String>,
    is_integer: bool,
}

impl ParamHeaders {
    /// Finds the headers that a tool's input schema asks for.
    ///
    /// # Errors
    /// Why the tool can't be called over HTTP: a header that the specification doesn't allow.
    pub fn from_schema(schema: &RawValue) -> Result<Self, String> {
        if !schema.get().contains(HEADER_KEY) {
            return Ok(Self::default());
        }
        let schema: Value =
            serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
        let mut headers = Vec::new();
        find_headers(&schema, &mut Vec::new(), &mut headers)?;
        if count_header_keys(&schema) > headers.len() {
            return Err(format!(
                "`{HEADER_KEY}` stands where only `{PROPERTIES_KEY}` may lead"
            ));
        }
        let mut names = HashSet::new();
        match headers.iter().find(|header| !names.insert(&header.name)) {
            Some(header) => Err(format!("two arguments have the header {}", header.name)),
            None => Ok(Self(headers)),
        }
    }

    /// Returns the names of all headers, in lowercase, and whether their arguments are integers.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        let headers = self.0.iter();
        headers.map(|header| (header.name.as_str(), header.is_integer))
    }

    /// Returns the names and values of the headers of a call with these arguments.
    pub fn of_arguments(&self, arguments: &RawValue) -> Vec<(String, String)> {
        let headers = self.0.iter();
        let pairs = headers.filter_map(|header| {
            let value = find_value(arguments, &header.path)?;
            Some((header.name.clone(), header_text(value)?))
        });
        pairs.collect()
    }
}

/// Collects the headers of the properties that only `properties` leads to.
fn find_headers(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    let Some(Value::Object(properties)) = schema.get(PROPERTIES_KEY) else {
        return Ok(());
    };
    for (key, property) in properties {
        path.push(key.clone());
        if let Some(name) = property.get(HEADER_KEY) {
            found.push(ParamHeader {
                name: header_name(name, property)?,
                path: path.clone(),
                is_integer: property.get("type") == Some(&Value::from("integer")),
            });
        }
        find_headers(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn header_name(name: &Value, property: &Value) -> Result<String, String> {
    let is_token = |name: &&str| {
        let is_token_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(is_token_byte)
    };
    let Some(name) = name.as_str().filter(is_token) else {
        return Err(format!("`{HEADER_KEY}` {name} isn't a header's name"));
    };
    let kind = property.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "the argument of the header {name} is neither a string nor an integer nor a boolean"
        ));
    }
    Ok(format!("mcp-param-{}", name.to_ascii_lowercase()))
}

/// Counts the `x-mcp-header` keywords in a schema and all of its subschemas. A property with that name doesn't count.
fn count_header_keys(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(count_header_keys).sum(),
        Value::Object(members) => {
            let count = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                (HEADER_KEY, _) => 1,
                (PROPERTIES_KEY, Value::Object(properties)) => {
                    properties.values().map(count_header_keys).sum()
                }
                (key, _) if DATA_KEYS.contains(&key) => 0,
                (_, value) => count_header_keys(value),
            };
            members.iter().map(count).sum()
        }
        _ => 0,
    }
}

fn find_value<'t>(arguments: &'t RawValue, path: &[String]) -> Option<&'t RawValue> {
    path.iter().try_fold(arguments, |object, key| {
        let mut members: HashMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
        members.remove(key)
    })
}

/// Returns the value of the header. `null` has no value.
fn header_text(value: &RawValue) -> Option<String> {
    let json = value.get();
    match json.as_bytes().first()? {
        b'"' => {
            let text: String = serde_json::from_str(json).ok()?;
            Some(encode_header_value(&text).into_owned())
        }
        b't' | b'f' | b'-' | b'0'..=b'9' => Some(json.to_owned()),
        _ => None,
    }
}

// Values in headers: as they are if they are plain text, and in Base64 otherwise.

const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// Returns the value of a header that says `text`.
pub fn encode_header_value(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let is_padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    if is_plain && !is_padded && encoded_part(text).is_none() {
        return Cow::Borrowed(text);
    }
    let encoded = BASE64.encode(text.as_bytes());
    Cow::Owned(format!("{BASE64_PREFIX}{encoded}{BASE64_SUFFIX}"))
}

/// Returns what the value of a header says, or `None` if it isn't Base64 although it should be.
pub fn decode_header_value(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = encoded_part(value) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = BASE64.decode(encoded.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn encoded_part(value: &str) -> Option<&str> {
    value
        .strip_prefix(BASE64_PREFIX)?
        .strip_suffix(BASE64_SUFFIX)
}

// Headers of requests to a server, compared with the body that they repeat: a gateway may have trusted them.

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
    match single_header(headers, NAME_HEADER)? {
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
            |value: &str, expected: &str| value == expected
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
    match (single_header(headers, name)?, expected) {
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
fn single_header(headers: &impl PostHeaders, name: &str) -> Result<Option<String>, RpcError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match decode_header_value(&value) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(mismatch(&format!("the header {name} has invalid Base64"))),
    }
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
