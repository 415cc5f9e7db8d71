//! `read_output`: what a call wants to read of an earlier output that was cut, and why there is nothing to read.

use regex::bytes::Regex;

/// How many bytes of an output a call gets that doesn't say how many.
pub const DEFAULT_PAGE_BYTES: u64 = 16 << 10;

/// What a call of `read_output` asks for.
#[derive(Debug, Clone)]
pub struct OutputRequest {
    /// The id of the call whose output was cut.
    pub id: String,
    /// The byte offset where reading begins. With a pattern, where the search begins.
    pub offset: u64,
    /// How many bytes of the output to return at most. `None` is the default.
    pub limit: Option<u64>,
    /// What to look for. Without one, the output is returned as it is.
    pub pattern: Option<Regex>,
}

/// What is left of an output that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOutput {
    /// The name of the file that has it, in the directory for outputs. `None` if it wasn't kept.
    pub file_name: Option<String>,
    /// Bytes received.
    pub total_bytes: u64,
}

/// Why a call of `read_output` gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputUnavailable {
    /// The conversation has no call with this id that has ended.
    UnknownId {
        /// The id.
        id: String,
        /// The ids of the latest calls whose outputs were cut and kept, in the order in which they ended.
        known: Vec<String>,
        /// How many earlier ones aren't listed.
        more: usize,
    },
    /// The call's result has the whole output.
    NotCut {
        /// The id.
        id: String,
    },
    /// The rest of the output wasn't kept.
    NotKept {
        /// The id.
        id: String,
    },
    /// The output was kept, but its file can't be read any more.
    Gone {
        /// The id.
        id: String,
    },
    /// The output ends before the offset.
    PastEnd {
        /// The offset.
        offset: u64,
        /// How many bytes there are.
        len: u64,
    },
    /// The calls can't be assigned to a conversation, so none of their outputs can be read.
    NoConversation,
}
