//! The settings of a replay.

use crate::replay::policy::ExecutePolicy;
use toolq_core::types::{IgnorePattern, TextNormalizer};

/// The settings of a replay.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct ReplaySettings {
    /// Which calls run.
    pub execute: ExecutePolicy,
    /// Parts of each result that may differ.
    pub ignored: Vec<IgnorePattern>,
    /// What is replaced in all texts before they are compared.
    pub normalizers: Vec<TextNormalizer>,
    /// Absolute or relative tolerance for numbers.
    pub tolerance: Option<f64>,
    /// Whether call ids may differ from the recorded ones, consistently one for one.
    pub rename_ids: bool,
    /// Whether to compute edits that write new results into the recordings.
    pub update_recordings: bool,
    /// Whether stale results count as differences.
    pub strict: bool,
    /// Whether to stop after the first turn in which a call differs.
    pub fail_fast: bool,
}
