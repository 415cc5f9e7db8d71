//! The vendor of a stream.

use crate::types::Dialect;

/// The vendor of a stream, if given instead of detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamVendor {
    /// The Messages API.
    Anthropic,
    /// Chat completions and responses.
    OpenAi,
}

impl StreamVendor {
    pub(super) fn of_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Anthropic => Self::Anthropic,
            _ => Self::OpenAi,
        }
    }

    /// Returns what `--from` calls such a stream.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic-sse",
            Self::OpenAi => "openai-sse",
        }
    }
}
