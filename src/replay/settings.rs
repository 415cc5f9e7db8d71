use crate::replay::policy::Execute;
use toolq_core::types::Ignored;

/// How a replay is done.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What really runs.
    pub execute: Execute,
    /// Parts of every result that may differ.
    pub ignored: Vec<Ignored>,
    /// How far numbers may be apart.
    pub tolerance: Option<f64>,
    /// Whether ids of calls may be others than recorded.
    pub rename: bool,
    /// Whether new results go into the recordings.
    pub update: bool,
    /// Whether the first call that differs ends it, with its turn.
    pub fail_fast: bool,
}
