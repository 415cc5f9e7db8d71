//! Bytes → tools file, turns, declarations. Pure: nothing here runs, and nothing knows what a tool means.

mod dialects;
mod document;
mod error;
mod extent;
mod follow;
mod frames;
mod index;
mod assembly;
mod complaint;
mod declarations;
mod pairing;
mod placed;
mod reading;
mod recognise;
mod recording;
mod response;
mod source;
mod stream;
pub mod tools_file;
mod turns;
mod yaml;

pub use assembly::Assembly;
pub use declarations::{Declaration, Declarations, declarations};
use error::Fault;
pub use error::{InputError, Place};
pub use follow::Follow;
pub use placed::nearest;
pub use recording::{LoadStored, Recording, Reply};
pub use response::{ResponseFault, bounded_calls, response};
pub use source::Source;
pub use stream::{Part, Stream, Told, Vendor, completed, is_stream, turns as turns_of};
pub use tools_file::tools_schema;
pub use yaml::{Data, Entry, Node, parse_yaml};
