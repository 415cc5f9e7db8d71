//! Server-sent events: bytes in as they arrive, events about messages and calls out as soon as they are certain.

mod decoder;
mod event;
mod messages;
mod partial_json;
mod sse;
mod turns;

pub use decoder::{Stream, Vendor};
pub use event::{Part, Told};
pub(crate) use messages::{Arriving, Messages};
pub use partial_json::completed;
pub use sse::is_stream;
pub(crate) use sse::{Events, Fault};
pub use turns::turns;
