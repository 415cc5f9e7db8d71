//! Decodes streams of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're certain.

mod collect_turns;
mod decoder;
mod event;
mod message_tracker;
mod partial_json;
mod sse;

pub use collect_turns::collect_turns;
pub use decoder::{StreamDecoder, StreamVendor};
pub use event::{PartialCall, StreamEvent};
pub(crate) use message_tracker::{CallBuilder, GROWTH_DIVISOR, MessageTracker};
pub use partial_json::complete_partial_json;
pub use sse::is_event_stream;
pub(crate) use sse::{SseDecoder, SseError};
