//! The events of a streamed response → the body that the API would have sent at once.

mod block;
mod body;
mod calls;
mod chunks;

pub use body::Assembly;
