//! The inputs of commands: files, streams, and lines that arrive one by one.

pub(crate) mod files;
pub(crate) mod stdin;
mod stream_input;

pub(crate) use files::CommandInput;
pub(crate) use stdin::{ChunkReader, TemporaryFileError, create_temporary_file};
pub(crate) use stream_input::{FollowInput, StreamInput};
