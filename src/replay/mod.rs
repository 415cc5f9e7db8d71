//! Checks recordings against the current tools: do the schemas still accept the inputs, and are the results still the
//! same?
//!
//! `recording_files` finds recordings. [`RecordingReplayer`] checks, runs, and compares their calls. `reports` reports
//! the findings, and `update` writes new results into recordings. Calls run on the same engine as in `toolq run`.
//! Nothing here depends on the command line or on stdout.

mod case;
mod classify;
mod compare;
mod policy;
mod recording_files;
mod relocation;
mod replay_turn;
mod replayer;
mod reports;
mod result_collector;
mod settings;
mod tree_copy;
mod tree_removal;
mod unapplied_call;
mod update;
mod working_copy;

pub(crate) use policy::ExecutePolicy;
pub(crate) use recording_files::{FindRecordingsError, Shard, find_recordings};
pub(crate) use relocation::Relocation;
pub(crate) use replayer::{RecordingReplayer, ReplayError};
pub(crate) use reports::{
    HtmlReport, JsonReport, JunitReport, MarkdownReport, ReplayReport, TerminalReport, totals_label,
};
pub(crate) use settings::ReplaySettings;
pub(crate) use tree_copy::TreeCopyError;
pub(crate) use update::{FileStamp, RecordingEdit, update_recording};
pub(crate) use working_copy::WorkingCopy;
