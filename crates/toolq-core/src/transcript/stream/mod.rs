//! Decodes streams of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're certain. For the response to an agent's request, it also assembles the body.

mod block;
mod block_content;
mod collect_turns;
mod decoder;
mod event;
mod message_tracker;
mod open_message;
mod partial_json;
mod response_body;
mod sse;
mod vendor;

pub(crate) use block::Block;
pub use collect_turns::collect_turns;
pub use decoder::{ResponseAssembler, StreamDecoder};
pub use event::{PartialCall, StreamEvent};
pub(crate) use message_tracker::MessageTracker;
pub use partial_json::complete_partial_json;
pub use sse::{SseDecoder, SseError, SseEvent, is_event_stream};
pub use vendor::StreamVendor;
