//! What clients are connected by.

use std::sync::Arc;

use crate::commands::serve::open_calls::OpenCalls;
use crate::output::CommandError;
use toolq_engine::RunControl;

/// Brings the messages of clients in, and the answers out.
pub(crate) trait ClientTransport {
    /// Handles messages until no more can come, or the run is stopped.
    ///
    /// # Errors
    /// Messages can't be read.
    fn receive(
        &mut self,
        calls: &Arc<OpenCalls>,
        control: &RunControl,
    ) -> impl Future<Output = Result<(), CommandError>>;

    /// Says on stderr what was odd, once no more messages come.
    fn report_end(&self);

    /// Waits until clients have read their last answers, but not for long.
    ///
    /// # Errors
    /// A client doesn't read them.
    fn finish(self) -> impl Future<Output = Result<(), CommandError>>;
}
