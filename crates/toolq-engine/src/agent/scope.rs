use crate::agent::budget::Purse;
use std::sync::Arc;

/// Where a call stands among agents that call each other.
#[derive(Debug)]
pub(crate) struct Around {
    /// How many agents it stands within.
    pub(crate) depth: u32,
    /// How many agents there may be.
    pub(crate) deepest: u32,
    /// The agent runs beside other calls, so that its own calls must, too.
    pub(crate) safe: bool,
    pub(crate) purse: Arc<Purse>,
}
