//! The record types: one type for each, with which it is written, read, and described in the JSON Schema. Members are
//! written in the order of their declaration; a release adds new ones after the existing ones, and ignores those that a
//! newer release added.

mod agent;
mod approval;
mod blob;
mod call;
mod call_end;
mod discovery;
pub(crate) mod record;
mod schema;
mod session;
mod tool_meaning;

pub use agent::{AgentUsageRecord, ModelResponseRecord};
pub use approval::{ApprovalRecord, ProbeRecord, ResolveRecord};
pub(crate) use blob::{
    BLOB_REF_PREFIX, BlobError, PRUNED_RESULT, is_file_extension, is_sha256_hex, open_regular_file,
    read_error_text, sha256_hex, store_blob, write_file_atomically,
};
pub use blob::{RecordContent, StoredBlob, blob_dir_for};
pub use call::{CallContent, CallRecord, FailedAttempt, StartRecord};
pub(crate) use call_end::end_record_kind;
pub use call_end::{CallEndRecord, ErrorRecord, MemoryRecord, ProcessExit};
pub use discovery::{DescribeRecord, ListRecord, ServerEndRecord, ServerStartRecord};
pub use record::{FormatVersion, Record, RecordKind};
pub(crate) use record::{NewRecord, parse_next_record, recorded_text};
pub use schema::log_schema;
pub use session::{
    RecoveredRecord, SessionEndRecord, SessionRecord, ToolsChangeRecord, ToolsFileRef, TurnRecord,
};
pub use tool_meaning::definition_digests;
