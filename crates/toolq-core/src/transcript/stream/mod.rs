//! Decodes streams of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're certain.

mod block;
mod collect_turns;
mod decoder;
mod event;
mod message_tracker;
mod open_message;
mod partial_json;
mod sse;
mod vendor;

pub(crate) use block::Block;
pub use collect_turns::collect_turns;
pub use decoder::StreamDecoder;
pub use event::{PartialCall, StreamEvent};
pub(crate) use message_tracker::MessageTracker;
pub use partial_json::complete_partial_json;
pub use sse::{SseDecoder, SseError, SseEvent, is_event_stream};
pub use vendor::StreamVendor;
