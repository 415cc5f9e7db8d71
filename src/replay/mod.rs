//! Recorded turns against today's tools: do the schemas still accept the inputs, and is each result still the recorded
//! one?
//!
//! [`files`] finds recordings, [`Replay`] checks, runs and compares their calls, [`update`] writes new results into them,
//! and `report` tells what was found. Calls run on the engine of `toolq run`. Nothing here knows the command line or
//! stdout.

mod answers;
mod case;
mod compare;
mod ends;
mod files;
mod judge;
pub mod report;
mod session;
mod settings;
mod update;

pub use case::{Case, Difference, End, Kind, Open, Totals};
pub use files::{FilesError, Shard, files};
pub use judge::Execute;
pub use session::{Replay, ReplayError};
pub use settings::Settings;
pub use update::{Edit, Stamp, UpdateError, update};
