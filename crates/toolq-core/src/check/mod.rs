//! Tools file → tools; input → accepted or problems; templates → what a call runs.

mod admission;
mod checker;
mod coerce;
mod description;
mod fill;
mod paths;
mod rejection;
mod safety;

pub use admission::Arriving;
pub use checker::Checker;
pub use description::{MAX_DESCRIPTION, described, unasked};
