//! Bytes → tools file, turns, declarations. Pure: nothing here runs, and nothing knows what a tool means.

mod assembly;
mod declarations;
mod detect;
mod document;
mod document_error;
mod document_reader;
mod error;
mod follow;
mod formats;
mod frames;
mod ids;
mod index;
mod index_builder;
mod json_scanner;
mod pairing;
mod raw_call;
mod recording;
mod response;
mod source;
mod stream;

pub use assembly::Assembly;
pub use declarations::{Declaration, Declarations, declarations};
pub use error::{InputError, Place};
pub use follow::Follow;
pub use recording::{LoadStored, Recording, Reply};
pub use response::{ResponseFault, bounded_calls, response};
pub use source::Source;
pub use stream::{Part, Stream, Told, Vendor, completed, is_stream, turns};
