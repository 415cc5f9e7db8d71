//! Decodes streams of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're certain.

mod block;
mod call_input;
mod decoder;
mod event;
mod message_record;
mod messages;
mod partial_json;
mod sse;

pub(crate) use block::{Block, BlockKind};
pub(crate) use call_input::{Arrival, CallInput};
pub use decoder::StreamDecoder;
pub use event::{PartialCall, StreamEvent, collect_turns};
pub(crate) use messages::{Messages, UNCLEAR_INPUT, call_kind};
pub use partial_json::complete_partial_json;
pub use sse::{SseDecoder, SseError, SseEvent, is_event_stream};
