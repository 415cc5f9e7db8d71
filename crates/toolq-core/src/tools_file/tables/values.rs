//! Values that are written as one text or number, with a syntax of their own: durations, sizes, rates, HTTP statuses, retry
//! conditions, prices.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::Value;

use crate::text::{parse_bytes, parse_duration};
use crate::tools_file::spanned::Field;
use crate::types::{RetryCondition, StartRate, StatusRange};

/// A value that is parsed from text or, for some types, from a number.
pub(crate) trait ParseScalar: Sized {
    /// What is expected, with an example.
    const EXPECTED: &'static str;
    /// The name of its schema.
    const NAME: &'static str;
    /// Whether its schema is written out wherever it is used.
    const IS_INLINE: bool = false;

    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Parses text. The error says what is wrong and, after `; `, what to do.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Converts a whole number. Returns `None` if the type doesn't accept one.
    fn from_number(_: u64) -> Option<Result<Self, String>> {
        None
    }

    /// Converts any other number. Returns `None` if the type doesn't accept one.
    fn from_fraction(_: f64) -> Option<Self> {
        None
    }
}

/// Such a value, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Scalar<T>(pub T);

impl<'de, T: ParseScalar> Deserialize<'de> for Scalar<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(ScalarVisitor(PhantomData)).map(Self)
    }
}

impl<T: ParseScalar> JsonSchema for Scalar<T> {
    fn inline_schema() -> bool {
        T::IS_INLINE
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::schema(generator)
    }
}

/// Reads such a value.
struct ScalarVisitor<T>(PhantomData<T>);

impl<T: ParseScalar> Visitor<'_> for ScalarVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let unexpected = serde::de::Unexpected::Unsigned(number);
        T::from_number(number)
            .ok_or_else(|| E::invalid_type(unexpected, &self))?
            .map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "only negative numbers get here, and they are rejected"
        )]
        T::from_fraction(number as f64)
            .ok_or_else(|| E::invalid_type(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::from_fraction(number)
            .ok_or_else(|| E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

/// A duration.
pub type DurationText = Scalar<Duration>;

impl ParseScalar for Duration {
    const NAME: &'static str = "Duration";
    const EXPECTED: &'static str = "a duration such as `30s` or `500ms`";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_duration(text)
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Err(format!(
            "a duration needs a unit; write `{number}s` for seconds or `{number}ms` for milliseconds"
        )))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration: a number with ms, s, m, h or d as its unit, or several of them from the largest to the smallest.",
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]+)? *(ms|s|m|h|d)( *[0-9]+(\.[0-9]+)? *(ms|s|m|h))*$",
            "examples": ["500ms", "30s", "10m", "1m30s"],
        })
    }
}

/// For how long a server may be unused. `None` is `never`: it ends with the run.
pub type IdleText = Scalar<Option<Duration>>;

impl ParseScalar for Option<Duration> {
    const NAME: &'static str = "IdleTime";
    const EXPECTED: &'static str = "a duration such as `10m`, or `never`";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(None);
        }
        parse_duration(text).map(Some)
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Err(format!(
            "a duration needs a unit; write `{number}s` for seconds or `{number}m` for minutes"
        )))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration, or `never`.",
            "type": "string",
            "pattern": r"^(never|[0-9]+(\.[0-9]+)? *(ms|s|m|h|d)( *[0-9]+(\.[0-9]+)? *(ms|s|m|h))*)$",
            "examples": ["never", "10m"],
        })
    }
}

/// A number of bytes.
pub type SizeText = Scalar<u64>;

impl ParseScalar for u64 {
    const NAME: &'static str = "Size";
    const EXPECTED: &'static str = "a size such as `64KiB`";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_bytes(text)
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Ok(number))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size: bytes, or a number with KiB, MiB or GiB as its unit (KB, MB and GB are decimal).",
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": r"^[0-9]+(\.[0-9]+)? *(B|[KMG]iB|[kKMG]B)?$",
            "examples": ["64KiB", "10MiB"],
        })
    }
}

/// An HTTP status, or a range of them.
pub type StatusRangeText = Scalar<StatusRange>;

impl ParseScalar for StatusRange {
    const NAME: &'static str = "Statuses";
    const EXPECTED: &'static str = "an HTTP status such as `200`, or a range such as `200-299`";

    fn from_text(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        match (from.trim().parse(), to.trim().parse()) {
            (Ok(from), Ok(to)) if (100..=to).contains(&from) && to <= 599 => Ok(from..=to),
            _ => Err(format!(
                "`{text}` isn't an HTTP status; write a status such as `404`, or a range within 100 to 599 such as `200-299`"
            )),
        }
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Self::from_text(&number.to_string()))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An HTTP status, or a range of them.",
            "type": ["integer", "string"],
            "minimum": 100,
            "maximum": 599,
            "pattern": "^[1-5][0-9][0-9](-[1-5][0-9][0-9])?$",
            "examples": [404, "200-299"],
        })
    }
}

/// A failure to retry.
pub type RetryOnText = Scalar<RetryCondition>;

impl ParseScalar for RetryCondition {
    const NAME: &'static str = "RetryOn";
    const EXPECTED: &'static str =
        "`rate_limited`, `unavailable`, `timeout`, `\"exit:75\"` or `\"http:503\"`";

    fn from_text(text: &str) -> Result<Self, String> {
        let code = |prefix: &str| text.strip_prefix(prefix)?.trim().parse::<u16>().ok();
        let on = match text {
            "rate_limited" => RetryCondition::RateLimited,
            "unavailable" => RetryCondition::Unavailable,
            "timeout" => RetryCondition::Timeout,
            _ => match (code("exit:"), code("http:")) {
                (Some(exit @ 0..=255), _) => RetryCondition::Exit(exit.into()),
                (_, Some(status @ 100..=599)) => RetryCondition::Http(status),
                _ => {
                    return Err(format!(
                        "`{text}` isn't a failure to retry; write {}",
                        Self::EXPECTED
                    ));
                }
            },
        };
        Ok(on)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A failure to retry: a word, an exit code or an HTTP status.",
            "type": "string",
            "pattern": "^(rate_limited|unavailable|timeout|exit:[0-9]{1,3}|http:[1-5][0-9][0-9])$",
            "examples": ["rate_limited", "unavailable", "timeout", "exit:75", "http:503"],
        })
    }
}

/// A price in US dollars per million tokens.
pub type PriceNumber = Scalar<f64>;

impl ParseScalar for f64 {
    const NAME: &'static str = "double";
    const IS_INLINE: bool = true;
    const EXPECTED: &'static str = "a number of dollars per million tokens";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!(
            "a price must be {}, not `{text}`; write it without quotes, a sign or a unit: `3.00`",
            Self::EXPECTED
        ))
    }

    #[expect(clippy::cast_precision_loss, reason = "prices are small")]
    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Ok(number as f64))
    }

    fn from_fraction(number: f64) -> Option<Self> {
        Some(number)
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Self::json_schema(generator)
    }
}

/// A [`StartRate`] as it is written.
pub type RateText = Scalar<StartRate>;

impl ParseScalar for StartRate {
    const NAME: &'static str = "StartsPerPeriod";
    const EXPECTED: &'static str = "a rate such as `10/s`, `600/m` or `100/h`";

    fn from_text(text: &str) -> Result<Self, String> {
        let read = || {
            let (starts, period) = text.split_once('/')?;
            Some(Self {
                starts: starts.trim().parse().ok()?,
                period: period.trim().parse().ok()?,
            })
        };
        read().ok_or_else(|| {
            format!("`{text}` isn't a rate; write whole starts per second, minute or hour: `10/s`, `600/m` or `100/h`")
        })
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Err(format!(
            "a rate needs a period; write `{number}/s`, `{number}/m` or `{number}/h`"
        )))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of starts per second, minute or hour.",
            "type": "string",
            "pattern": "^ *[1-9][0-9]* */ *[smh] *$",
            "examples": ["10/s", "600/m", "100/h"],
        })
    }
}

/// The program and its arguments. Each is a template; no shell is involved.
pub type Argv = Vec<Field<String>>;

/// A JSON object, for tools.schema.json.
#[derive(JsonSchema)]
#[schemars(transparent, inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct JsonObject(serde_json::Map<String, Value>);

/// A schema, or a file that holds one, for tools.schema.json.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum InputSchema {
    /// The schema.
    Schema(JsonObject),
    /// The path of a file.
    File(String),
}
