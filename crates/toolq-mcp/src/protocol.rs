//! The revisions of the protocol and their two eras.

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

/// How client and server agree on a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolEra {
    /// Up to 2025-11-25: once, by `initialize`.
    Legacy,
    /// From 2026-07-28 on: every request carries its version.
    Modern,
}

/// A revision of the specification.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr,
)]
pub enum ProtocolVersion {
    /// The first one.
    #[strum(to_string = "2024-11-05")]
    V2024_11_05,
    /// Streamable HTTP, annotations of tools, batches.
    #[strum(to_string = "2025-03-26")]
    V2025_03_26,
    /// Structured content; no batches.
    #[strum(to_string = "2025-06-18")]
    V2025_06_18,
    /// Errors of inputs are results.
    #[strum(to_string = "2025-11-25")]
    V2025_11_25,
    /// No handshake and no sessions.
    #[strum(to_string = "2026-07-28")]
    V2026_07_28,
}

impl ProtocolVersion {
    /// The newest revision that begins with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Returns the revision's date, as messages have it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the revision with this date, if it is known.
    pub fn from_date(date: &str) -> Option<Self> {
        date.parse().ok()
    }

    /// Returns the era of the revision.
    pub fn era(self) -> ProtocolEra {
        if self >= Self::V2026_07_28 {
            ProtocolEra::Modern
        } else {
            ProtocolEra::Legacy
        }
    }
}

/// Which revisions a client may agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolPreference {
    /// Asks for the modern era first, then falls back to the legacy one.
    #[default]
    Auto,
    /// Asks for the legacy era first, because the server spoke it before.
    LegacyFirst,
    /// This revision. A legacy one stands for all that begin with `initialize`.
    Only(ProtocolVersion),
}

/// The name and version of a client or a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// The program's name. Empty if it doesn't say.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The program's version. Empty if it doesn't say.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
}

/// Reads a member that nothing depends on. With another type, it says nothing: a detail doesn't cost a tool or a server.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}
