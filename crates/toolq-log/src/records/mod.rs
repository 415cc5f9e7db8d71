//! What each type of record holds.

mod blob;
mod fields;
mod kind;
pub(crate) mod line;
pub mod metadata;
mod record;
mod schema;
mod truncated_text;

pub use blob::{Body, Stored};
pub(crate) use blob::{BodyError, NAMES_FILE, is_digest, open_regular, unreadable};
pub(crate) use fields::{
    AttemptFields, Before, CallContent, CallFields, DescribeFields, ProbeFields, ResolveFields,
    ResponseFields, ResultFields, ResultKind, SessionFields, StartFields, tool_sha256,
};
pub use fields::{EndFields, TurnFields};
pub use kind::Kind;
pub(crate) use line::{Chain, Head, hex, sha256};
pub(crate) use metadata::{LoggedCallContent, ModelResponse};
pub use metadata::{SessionStart, Start, is_cut_short};
pub use record::Record;
pub(crate) use record::verified;
pub use schema::log_schema;
pub(crate) use truncated_text::Brief;
