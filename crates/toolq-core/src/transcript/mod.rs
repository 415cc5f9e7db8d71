//! Parses what models produce (documents, session logs, streams) into turns of calls, and reads tool declarations.
//!
//! Pure: nothing here runs a call or knows what a tool does.

mod body_reader;
mod declarations;
mod document_frames;
mod document_reader;
mod formats;
mod index;
mod index_builder;
mod input_source;
mod json_end_scanner;
mod line_follower;
mod raw_call;
mod recording;
mod reply_pairing;
mod response;
mod stream;

pub use body_reader::{RecordedReply, StoredContentLoader};
pub use declarations::{ToolDeclaration, ToolDeclarations, read_declarations};
pub use input_source::{InputError, InputSource, LineCol};
pub use line_follower::{FollowedLine, LineFollower};
pub use raw_call::invalid_input_object;
pub use recording::Recording;
pub use response::{ResponseError, parse_response};
pub use stream::{
    PartialCall, SseDecoder, SseError, SseEvent, StreamDecoder, StreamEvent, collect_turns,
    complete_partial_json, is_event_stream,
};
