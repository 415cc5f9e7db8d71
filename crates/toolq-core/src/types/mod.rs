//! The shared vocabulary: turns, calls, tools, outcomes, and events. Every stage uses these types. They hold facts, never
//! text written for a person or a model, and depend on no other stage.

mod agent;
mod answer;
mod backing;
mod call;
mod config;
mod dialect;
mod ending;
mod event;
mod memory;
mod outcome;
mod policies;
mod server;
mod status;
mod template;
mod tool;
mod usage;
mod verdict;

pub use crate::json_schema::ProblemDetail;
pub use crate::os::EnvFile;
pub use agent::*;
pub use answer::*;
pub use backing::*;
pub use call::*;
pub use config::*;
pub use dialect::*;
pub use ending::*;
pub use event::*;
pub use memory::*;
pub use outcome::*;
pub use policies::*;
pub use server::*;
pub use status::*;
pub use template::*;
pub use tool::*;
pub use usage::*;
pub use verdict::*;
