//! The key `rate`, and the limits of a host.

use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Deserializer;

use crate::tools_file::keys::scalar::{ParseScalar, ScalarVisitor, impl_scalar};
use crate::tools_file::spanned::Field;
use crate::types::RatePeriod;

/// How often calls start.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a rate such as `10/s`, or a table such as `{per: 10/s, burst: 20}`"
)]
#[schemars(rename = "Rate", untagged)]
pub enum RateForm {
    // Accepts a number too, so that the error can say that the unit is missing.
    /// Starts per second, minute or hour, equally far apart.
    #[serde(alias = "number")]
    Text(RateText),
    /// A rate that may be saved up.
    Table(RateTable),
}

/// A rate that may be saved up.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["per"]))]
pub struct RateTable {
    /// Starts per second, minute or hour.
    pub per: Field<RateText>,
    /// How many starts may be saved up while fewer calls start; a run begins with all of them. Default: 1, so all starts
    /// are equally far apart.
    #[schemars(range(min = 1))]
    pub burst: Field<u32>,
}

/// Limits on the requests of `http` tools to a host.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct HostFile {
    /// Maximum number of calls that run at once.
    #[schemars(range(min = 1))]
    pub max_parallel: Field<u32>,
    /// How often calls start.
    pub rate: Field<RateForm>,
}

/// A number of starts per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateText {
    /// Starts in each period.
    pub starts: NonZeroU32,
    /// The period.
    pub period: RatePeriod,
}

impl ParseScalar for RateText {
    const EXPECTED: &'static str = "a rate such as `10/s`, `600/m` or `100/h`";

    fn from_text(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let rate = parts.and_then(|(starts, period)| {
            Some(Self {
                starts: starts.trim().parse().ok()?,
                period: RatePeriod::from_name(period.trim())?,
            })
        });
        rate.ok_or_else(|| {
            format!("`{text}` isn't a rate; write whole starts per second, minute or hour: `10/s`, `600/m` or `100/h`")
        })
    }

    fn from_number(number: u64) -> Option<Result<Self, String>> {
        Some(Err(format!(
            "a rate needs a period; write `{number}/s`, `{number}/m` or `{number}/h`"
        )))
    }
}

impl_scalar!(RateText, "StartsPerPeriod", {
    "description": "A number of starts per second, minute or hour.",
    "type": "string",
    "pattern": "^ *[1-9][0-9]* */ *[smh] *$",
    "examples": ["10/s", "600/m", "100/h"],
});
