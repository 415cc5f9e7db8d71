//! Parses what models produce (documents, session logs, streams) into turns of calls, and reads tool declarations.
//!
//! Pure: nothing here runs a call or knows what a tool does.

mod body_reader;
mod call_id;
mod chains;
mod declarations;
mod detect;
mod document;
mod document_error;
mod document_frames;
mod document_reader;
mod formats;
mod index;
mod index_builder;
mod input_error;
mod input_key;
mod input_source;
mod json_end_scanner;
mod line_follower;
mod raw_call;
mod recording;
mod reply_pairing;
mod response;
mod response_error;
mod response_usage;
mod stream;
mod unrecognized;

pub use body_reader::{RecordedReply, StoredContentLoader};
pub use declarations::{ToolDeclaration, ToolDeclarations, read_declarations};
pub use formats::invalid_input_object;
pub use input_error::{InputError, LineCol};
pub use input_source::InputSource;
pub use line_follower::{FollowedLine, LineFollower};
pub use recording::Recording;
pub use response::parse_response;
pub use response_error::ResponseError;
pub use stream::{
    PartialCall, SseDecoder, SseError, SseEvent, StreamDecoder, StreamEvent, collect_turns,
    complete_partial_json, is_event_stream,
};
