//! Recorded turns against today's tools: do the schemas still accept the inputs, and is each result still the recorded
//! one?
//!
//! [`files`] finds recordings, [`Replay`] checks, runs and compares their calls, [`update`] writes new results into them,
//! and `report` tells what was found. Calls run on the engine of `toolq run`. Nothing here knows the command line or
//! stdout.

mod case;
mod classify;
mod compare;
mod files;
mod policy;
mod reports;
mod result_collector;
mod session;
mod settings;
mod update;

pub(crate) use files::{FilesError, Shard, files};
pub(crate) use policy::Execute;
pub(crate) use reports::{JsonReport, JunitReport, MarkdownReport, Report, Screen, summary};
pub(crate) use session::{Replay, ReplayError};
pub(crate) use settings::Settings;
pub(crate) use update::{Edit, Stamp, update};
