//! Everything about tools.yaml. Text goes in; tools come out, or every problem of the file, each with its position and a
//! hint.
//!
//! ```text
//! text ── yaml ──► nodes ── spanned ──► keys ── resolve ──► Tools
//! ```

mod agent_reach;
mod argv;
mod keys;
mod lints;
mod resolve;
mod spanned;
mod write;
mod yaml;

pub use agent_reach::tools_of;
pub use keys::tools_schema;
pub use lints::warnings;
pub use resolve::{Loaded, load};
pub use write::tools_file;
pub use yaml::{Data, parse_yaml};
