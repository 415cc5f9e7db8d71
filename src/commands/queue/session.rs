//! What the commands of a queue have in common: the connection, its runtime, and the signals that end them.

use std::time::Duration;

use async_nats::Client;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::args::NatsFlags;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::queue::{NatsSettings, QueueName, build_nats_runtime, connect};

/// How long to wait at the end until the server has received everything.
const MAX_FLUSH_TIME: Duration = Duration::from_secs(1);
/// The default address of NATS.
const DEFAULT_URL: &str = "nats://127.0.0.1:4222";

/// A connection to NATS.
pub(super) struct NatsSession {
    pub(super) runtime: Runtime,
    pub(super) client: Client,
}

impl NatsSession {
    /// # Errors
    /// No server can be reached, or it refuses the credentials.
    pub(super) fn begin(flags: &NatsFlags, context: &CommandContext) -> Result<Self, CommandError> {
        let runtime = build_nats_runtime()?;
        let settings = nats_settings(flags, context);
        let connecting = connect(&settings, runtime.handle(), &context.stderr);
        let client = runtime.block_on(connecting)?;
        Ok(Self { runtime, client })
    }

    /// Waits until everything was sent, and closes the connection.
    pub(super) fn end(self) {
        // What matters was confirmed; this is for the rest. Without a connection, it would wait for the next one.
        let flushing = async { timeout(MAX_FLUSH_TIME, self.client.flush()).await };
        let _ = self.runtime.block_on(flushing);
        self.runtime.shutdown_background();
    }
}

/// As usual for a variable, an empty `NATS_URL` is unset.
fn nats_settings(flags: &NatsFlags, context: &CommandContext) -> NatsSettings {
    let from_environment = || {
        let url = context.environment.get_os("NATS_URL")?;
        url.to_str().map(str::to_owned)
    };
    let url = flags.url.clone().or_else(from_environment);
    let url = url.filter(|url| !url.is_empty());
    NatsSettings {
        url: url.unwrap_or_else(|| DEFAULT_URL.to_owned()),
        credentials: flags.credentials.clone(),
        tls_ca: flags.tls_ca.clone(),
        tls_identity: flags.tls_cert.clone().zip(flags.tls_key.clone()),
    }
}

/// # Errors
/// It can't be the name of a queue.
pub(super) fn parse_queue_name(name: &str) -> Result<QueueName, CommandError> {
    name.parse()
        .map_err(|why| CommandError::usage(format!("the name of a queue {why}")))
}
