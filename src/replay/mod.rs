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
mod replayer;
mod reports;
mod root_copy;
mod update;

pub(crate) use policy::{ExecutePolicy, ReplaySettings};
pub(crate) use recording_files::{Shard, find_recordings};
pub(crate) use replayer::{RecordingReplayer, ReplayError};
pub(crate) use reports::{
    HtmlReport, JsonReport, JunitReport, MarkdownReport, OpenReport, ReplayReport, TerminalReport,
    totals_label,
};
pub(crate) use root_copy::{CopiedTools, RootCopy};
pub(crate) use update::{FileStamp, RecordingEdit, update_recording};
