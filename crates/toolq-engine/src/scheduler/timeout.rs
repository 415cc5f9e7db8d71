use std::time::Duration;

/// How long an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// From its start on.
    pub(crate) after: Duration,
    /// The limit of tools.yaml that this comes from.
    pub(crate) named: Duration,
}
