//! The little that pure code asks of the operating system: variables, the clock, process identities, private directories.

mod clock;
mod environment;
mod failpoint;
mod private_dir;
mod process_identity;

pub use clock::Clock;
pub use environment::Environment;
pub use failpoint::{arm_failpoints, failpoint, failpoint_within};
pub use private_dir::make_private_folder;
pub use process_identity::Process;
