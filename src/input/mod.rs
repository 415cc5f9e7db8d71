//! The inputs of commands: files, streams, and lines that arrive one by one.

mod chunk_reader;
pub(crate) mod files;
mod follow_input;
pub(crate) mod stdin;
mod stream_input;
mod temporary_file;

pub(crate) use chunk_reader::ChunkReader;
pub(crate) use files::CommandInput;
pub(crate) use follow_input::FollowInput;
pub(crate) use stream_input::StreamInput;
pub(crate) use temporary_file::{TemporaryFileError, create_temporary_file};
