//! What earlier runs recorded about a call, and what that means for the next run.

mod agents;
mod answer_cache;
mod history;
mod in_doubt;
mod logged_call;
mod lookup;
mod policy;
mod resolve;

pub use agents::Recollection;
pub use history::History;
pub(crate) use history::Place;
pub(crate) use in_doubt::Doubts;
pub use lookup::{Conflict, RecallError};
pub use resolve::{Resolution, ResolveError, resolve};
