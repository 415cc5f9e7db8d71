//! Checks calls before they run: validates and coerces inputs, confines paths, fills templates, and accepts or rejects
//! each call.

mod admission;
mod checker;
mod description;
mod fill;
mod locks;
mod path_confinement;
mod rejection;
mod valid_input;

pub use admission::StreamAdmission;
pub use checker::CallChecker;
pub use description::{MAX_DESCRIPTION_BYTES, parse_description, undescribed_tools};
pub use fill::invocation::build_server_command;
pub use locks::recheck_locks;
pub use path_confinement::{PathLimits, recheck_paths};
