//! What a command reads: files, streams, lines that arrive one by one.

mod chunk_reader;
pub(crate) mod files;
mod follow;
mod stream;

pub(crate) use files::Incoming;
pub(crate) use follow::Lines;
pub(crate) use stream::Live;
