use std::borrow::Cow;

use serde::Deserialize;

use toolq_log::{Damage, Kind, Record};

/// Which calls somebody wants to see.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those that failed, did not run, or have no result.
    pub errors: bool,
    /// Only those of these tools; of all where none is named.
    pub tools: Vec<String>,
}

#[derive(Deserialize)]
struct EndFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    is_error: bool,
}

/// Of a record beside the ends of a call.
#[derive(Deserialize)]
struct OfCall<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    /// Of a `resolve`.
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct NameFields<'a> {
    #[serde(borrow, alias = "tool_name")]
    name: Cow<'a, str>,
}

impl Filter {
    /// Whether every call is wanted.
    pub fn is_open(&self) -> bool {
        !self.errors && self.tools.is_empty()
    }

    pub(super) fn wants(&self, tool: &str, is_error: bool) -> bool {
        let named = self.tools.is_empty() || self.tools.iter().any(|name| name == tool);
        named && (is_error || !self.errors)
    }

    /// Whether a program wants this record, whose content is `content` where that can be had: those of the calls that
    /// are wanted, and of errors the results alone, for no record before them says how they end.
    ///
    /// # Errors
    /// Its metadata is not that of its type.
    pub fn keeps(&self, record: &Record, content: Option<&str>) -> Result<bool, Damage> {
        if self.is_open() {
            return Ok(true);
        }
        Ok(match &record.kind {
            Kind::ToolCall => {
                let call = content.and_then(|json| serde_json::from_str(json).ok());
                call.is_some_and(|call: NameFields<'_>| self.wants(&call.name, false))
            }
            Kind::ToolStart => {
                let start: NameFields<'_> = record.metadata()?;
                self.wants(&start.name, false)
            }
            kind if kind.ends_call() => {
                let end: EndFields<'_> = record.metadata()?;
                self.wants(&end.tool_name, end.is_error)
            }
            Kind::Resolve | Kind::ProbeStart | Kind::ProbeEnd | Kind::ModelResponse => {
                let of: OfCall<'_> = record.metadata()?;
                self.wants(&of.tool_name, of.is_error)
            }
            _ => false,
        })
    }
}
