//! The record types: what they contain, how they are written and read, and their JSON Schema.

mod blob;
mod fields;
mod kind;
pub(crate) mod line;
pub mod metadata;
mod record;
mod schema;
mod session_header;
mod truncated_text;

pub(crate) use blob::{
    BLOB_REF_PREFIX, BlobError, is_sha256_hex, open_regular_file, read_error_text,
};
pub use blob::{RecordContent, StoredBlob};
pub(crate) use fields::{
    AttemptFields, CallContent, CallFields, DescribeFields, InputBeforeCoercion, ProbeFields,
    ResolveFields, ResponseFields, ResultFields, ResultKind, SessionFields, StartFields,
    digest_tool,
};
pub use fields::{EndFields, TurnFields};
pub use kind::RecordKind;
pub(crate) use line::{HashChain, RecordHeader, sha256_hex, to_hex};
pub(crate) use metadata::{LoggedCallContent, ModelResponseRecord};
pub use metadata::{SessionRecord, StartRecord};
pub use record::Record;
pub(crate) use record::parse_next_record;
pub use schema::log_schema;
pub use session_header::{SessionHeader, SyncPolicy};
pub(crate) use truncated_text::TruncatedText;
