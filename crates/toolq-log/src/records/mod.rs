//! The record types: one type for each, with which it is written, read, and described in the JSON Schema. Members are
//! written in the order of their declaration; a release adds new ones after the existing ones, and ignores those that a
//! newer release added.

mod agent;
mod approval;
mod blob;
mod call;
mod call_end;
mod describe;
mod kind;
mod late_result;
pub(crate) mod line;
mod list;
mod probe;
mod process_exit;
mod record;
mod recorded_text;
mod recovered;
mod schema;
mod server;
mod session;
mod session_header;
mod start;
mod tool_meaning;

use std::time::Duration;

pub use agent::{AgentUsageRecord, ModelResponseRecord};
pub use approval::ApprovalRecord;
pub(crate) use blob::{
    BLOB_REF_PREFIX, BlobError, is_file_extension, is_sha256_hex, open_regular_file,
    read_error_text,
};
pub use blob::{RecordContent, StoredBlob};
pub use call::{CallContent, CallRecord, RecordedJson};
pub use call_end::{CallEndRecord, ErrorRecord, MemoryRecord};
pub(crate) use call_end::{CallEndStats, end_record_kind};
pub use describe::DescribeRecord;
pub use kind::RecordKind;
pub use late_result::LateResultRecord;
pub(crate) use line::{RecordHeader, sha256_hex};
pub use list::ListRecord;
pub use probe::{ProbeRecord, ResolveRecord};
pub use process_exit::ProcessExit;
pub use record::Record;
pub(crate) use record::parse_next_record;
pub(crate) use recorded_text::recorded_text;
pub use recovered::RecoveredRecord;
pub use schema::log_schema;
pub use server::{ServerEndRecord, ServerStartRecord};
pub use session::{
    FormatVersion, SessionEndRecord, SessionRecord, ToolsChangeRecord, ToolsFileRef, TurnRecord,
};
pub use session_header::SessionHeader;
pub(crate) use start::AttemptStart;
pub use start::{FailedAttempt, StartRecord};
pub use tool_meaning::{definition_digests, do_the_same};

/// Converts a duration to whole milliseconds.
fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
