//! Assembles the events of a streamed response into the body that the API would have sent without streaming.

mod assembler;
mod calls;
mod openai_chunks;
mod partial_block;

pub use assembler::ResponseAssembler;
