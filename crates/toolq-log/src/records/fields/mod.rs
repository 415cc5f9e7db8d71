//! Content and metadata of each record type, as they are written. Members are written in the order of their
//! declaration; a release adds new ones after the existing ones.

mod agent;
mod call;
mod describe;
mod probe;
mod result;
mod session;

pub(crate) use agent::ResponseFields;
pub(crate) use call::{CallContent, CallFields, InputBeforeCoercion, digest_tool};
pub(crate) use describe::DescribeFields;
pub(crate) use probe::{ProbeFields, ResolveFields};
pub(crate) use result::{AttemptFields, ResultFields, ResultKind, StartFields};
pub(crate) use session::SessionFields;
pub use session::{EndFields, TurnFields};

use std::time::Duration;

/// Converts a duration to whole milliseconds.
fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
