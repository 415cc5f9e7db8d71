//! Content and metadata of each type of record, in the order in which their members are written. What a release adds
//! stands behind what is there.

mod agent;
mod call;
mod describe;
mod probe;
mod result;
mod session;

pub(crate) use agent::ResponseFields;
pub(crate) use call::{Before, CallContent, CallFields, tool_sha256};
pub(crate) use describe::DescribeFields;
pub(crate) use probe::{ProbeFields, ResolveFields};
pub(crate) use result::{AttemptFields, ResultFields, ResultKind, StartFields};
pub(crate) use session::SessionFields;
pub use session::{EndFields, TurnFields};

use std::time::Duration;

/// Whole milliseconds.
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
