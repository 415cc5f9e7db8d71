//! The few services of the operating system that pure code needs: the environment, the clock, process identities, and
//! private directories.

mod clock;
mod environment;
mod failpoint;
mod private_dir;
mod process_identity;

pub use clock::Clock;
pub use environment::Environment;
pub use failpoint::{arm_failpoints, failpoint, failpoint_midway};
pub use private_dir::{create_private_dir, sync_parent};
pub use process_identity::ProcessIdentity;
