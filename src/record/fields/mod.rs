//! Content and metadata of each type of record, in the order in which their members are written. What a release adds
//! stands behind what is there.

mod agent;
mod brief;
mod call;
mod describe;
mod probe;
mod result;
mod session;

pub(super) use agent::{AgentFields, ResponseFields};
pub(super) use brief::Brief;
pub(super) use call::{Before, CallContent, CallFields, tool_sha256};
pub(super) use describe::DescribeFields;
pub(super) use probe::{ProbeFields, ResolveFields};
pub(super) use result::{AttemptFields, ResultFields, ResultKind, StartFields};
pub(super) use session::SessionFields;
pub use session::{EndFields, TurnFields};

use std::time::Duration;

/// Whole milliseconds.
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
