//! Decodes streams of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're certain.

mod call_input;
mod decoder;
mod message_record;
mod messages;
mod sse;

pub use call_input::complete_partial_json;
pub(crate) use call_input::{Arrival, CallInput};
pub use decoder::StreamDecoder;
pub(crate) use message_record::{Block, BlockKind};
pub use message_record::{PartialCall, StreamEvent, collect_turns};
pub(crate) use messages::{Messages, UNCLEAR_INPUT, call_kind};
pub use sse::{SseDecoder, SseError, SseEvent, is_event_stream};
