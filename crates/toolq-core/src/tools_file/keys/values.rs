//! Values that have a spelling of their own: durations, sizes, statuses, what is retried.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::text::{parse_bytes, parse_duration};
use crate::types::{RetryOn, StatusRange};

/// A kind of value that is read from text, or from a whole number where it has such a form.
trait Spelling: Sized {
    /// What it is and an example.
    const EXPECTED: &'static str;

    /// From text; the error says what is wrong and, behind `; `, what to do.
    fn from_text(text: &str) -> Result<Self, String>;

    /// From a whole number; nothing where that is no form of it.
    fn from_number(_: u64) -> Option<Result<Self, String>> {
        None
    }

    /// From any other number; nothing where that is no form of it.
    fn from_fraction(_: f64) -> Option<Self> {
        None
    }
}

struct SpellingVisitor<T>(std::marker::PhantomData<T>);

impl<T: Spelling> Visitor<'_> for SpellingVisitor<T> {
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
        #[expect(clippy::cast_precision_loss, reason = "it is negative, and so refused")]
        let fraction = T::from_fraction(number as f64);
        fraction.ok_or_else(|| E::invalid_type(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        let fraction = T::from_fraction(number);
        fraction.ok_or_else(|| E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

/// `Deserialize` and `JsonSchema` of a type that has a [`Spelling`].
macro_rules! spelled {
    ($type:ty, $name:literal, $schema:tt) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                reader.deserialize_any(SpellingVisitor(std::marker::PhantomData))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl Spelling for DurationText {
    const EXPECTED: &'static str = "a duration such as `30s` or `500ms`";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_duration(text).map(Self)
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Err(format!(
            "a duration needs a unit; write `{number}s` for seconds or `{number}ms` for milliseconds"
        )))
    }
}

spelled!(DurationText, "Duration", {
    "description": "A duration: a number and ms, s, m, h or d.",
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)? *(ms|s|m|h|d)$",
    "examples": ["500ms", "30s", "10m"],
});

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Spelling for Bytes {
    const EXPECTED: &'static str = "a size such as `64KiB`";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_bytes(text).map(Self)
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Ok(Self(number)))
    }
}

spelled!(Bytes, "Size", {
    "description": "A size: bytes, or a number and KiB, MiB or GiB (KB, MB, GB are decimal).",
    "type": ["integer", "string"],
    "minimum": 0,
    "pattern": r"^[0-9]+(\.[0-9]+)? *(B|[KMG]iB|[kKMG]B)?$",
    "examples": ["64KiB", "10MiB"],
});

/// One or several HTTP statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(pub StatusRange);

impl Spelling for Statuses {
    const EXPECTED: &'static str = "an HTTP status such as `200`, or a range such as `200-299`";

    fn from_text(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        match (from.trim().parse(), to.trim().parse()) {
            (Ok(from), Ok(to)) if (100..=to).contains(&from) && to <= 599 => Ok(Self(from..=to)),
            _ => Err(format!(
                "`{text}` is no HTTP status; write `404` or a range within 100 to 599 such as `200-299`"
            )),
        }
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Self::from_text(&number.to_string()))
    }
}

spelled!(Statuses, "Statuses", {
    "description": "An HTTP status or a range of them.",
    "type": ["integer", "string"],
    "minimum": 100,
    "maximum": 599,
    "pattern": "^[1-5][0-9][0-9](-[1-5][0-9][0-9])?$",
    "examples": [404, "200-299"],
});

/// A reason to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOnText(pub RetryOn);

impl Spelling for RetryOnText {
    const EXPECTED: &'static str =
        "`rate_limited`, `unavailable`, `timeout`, `\"exit:75\"` or `\"http:503\"`";

    fn from_text(text: &str) -> Result<Self, String> {
        let code = |prefix: &str| text.strip_prefix(prefix)?.trim().parse::<u16>().ok();
        let on = match text {
            "rate_limited" => RetryOn::RateLimited,
            "unavailable" => RetryOn::Unavailable,
            "timeout" => RetryOn::Timeout,
            _ => match (code("exit:"), code("http:")) {
                (Some(exit @ 0..=255), _) => RetryOn::Exit(exit.into()),
                (_, Some(status @ 100..=599)) => RetryOn::Http(status),
                _ => {
                    return Err(format!(
                        "`{text}` is nothing to retry; known are {}",
                        Self::EXPECTED
                    ));
                }
            },
        };
        Ok(Self(on))
    }
}

spelled!(RetryOnText, "RetryOn", {
    "description": "A reason to try again: a word, or an exit code or HTTP status.",
    "type": "string",
    "pattern": "^(rate_limited|unavailable|timeout|exit:[0-9]{1,3}|http:[1-5][0-9][0-9])$",
    "examples": ["rate_limited", "unavailable", "timeout", "exit:75", "http:503"],
});

/// A price: US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceNumber(pub f64);

impl Spelling for PriceNumber {
    const EXPECTED: &'static str = "a number of dollars per million tokens";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!(
            "a price must be {}, not `{text}`; write it without quotes, a sign or a unit: `3.00`",
            Self::EXPECTED
        ))
    }

    #[expect(clippy::cast_precision_loss, reason = "prices are small")]
    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Ok(Self(number as f64)))
    }

    fn from_fraction(number: f64) -> Option<Self> {
        Some(Self(number))
    }
}

impl<'de> Deserialize<'de> for PriceNumber {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(SpellingVisitor(std::marker::PhantomData))
    }
}

impl JsonSchema for PriceNumber {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        f64::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}
