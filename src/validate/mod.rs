//! Tools file → tools; input → accepted or problems; templates → what a call runs.

mod address;
mod arriving;
mod checker;
mod coerce;
mod described;
mod fill;
mod hosts;
#[cfg(test)]
pub(crate) mod fixture;
mod names;
mod paths;
mod public;
mod reach;
mod rejection;
mod safety;
mod schema;
mod template;
mod tools_file;

pub use address::{AddressFault, request_url};
pub use arriving::Arriving;
pub use checker::Checker;
pub use described::{MAX_DESCRIPTION, described, unasked};
pub use names::clipped;
pub use public::is_public;
pub use reach::tools_of;
pub use schema::{Schema, SchemaFault, schema_faults};
pub use template::parse_template;
pub use tools_file::{Loaded, load, warnings};
