//! Content and metadata of each type of record, in the order in which their members are written. What a release adds
//! stands behind what is there.

mod call;
mod result;
mod session;

pub(super) use call::{CallContent, CallFields};
pub(super) use result::{AttemptFields, ResultFields, ResultKind, StartFields};
pub(super) use session::SessionFields;
pub use session::{EndFields, TurnFields};

use std::time::Duration;

/// Whole milliseconds.
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
