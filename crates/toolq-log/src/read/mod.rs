//! Read records back, and verify that each is what was written.

mod corruption;
mod reader;
mod referenced_files;
mod sequence;
mod verify;

pub use corruption::Damage;
pub(crate) use corruption::Flaw;
pub(crate) use reader::MAX_TORN;
pub use reader::Records;
pub use sequence::Order;
pub use verify::witness;
