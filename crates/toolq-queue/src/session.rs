//! What the commands of a queue have in common: its name, and the connection with its runtime.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::connection::{NatsSettings, build_nats_runtime, connect};
use crate::names::QueueName;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;

/// How long to wait at the end until the server has received everything.
const MAX_FLUSH_TIME: Duration = Duration::from_secs(1);

/// A connection for one command on a queue.
#[derive(Debug)]
pub struct QueueSession {
    pub(crate) name: QueueName,
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) notices: Notices,
}

impl QueueSession {
    /// # Errors
    /// It can't be the name of a queue, no server can be reached, or the server refuses the credentials.
    pub fn begin(
        queue: &str,
        settings: &NatsSettings,
        notices: Notices,
    ) -> Result<Self, CommandError> {
        let name = queue
            .parse()
            .map_err(|why| CommandError::usage(format!("the name of a queue {why}")))?;
        let runtime = build_nats_runtime()?;
        let client = runtime.block_on(connect(settings, runtime.handle(), &notices))?;
        Ok(Self {
            name,
            runtime,
            client,
            notices,
        })
    }

    /// Runs a command on the queue, which must exist, and closes the connection.
    pub(crate) fn run<T>(
        self,
        command: impl AsyncFnOnce(&TurnQueue, &Self) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let done = self.runtime.block_on(async {
            let queue = TurnQueue::open(&self.client, &self.name).await?;
            command(&queue, &self).await
        })?;
        self.end();
        Ok(done)
    }

    /// Waits until everything was sent, and closes the connection.
    pub(crate) fn end(self) {
        // What matters was confirmed; this is for the rest. Without a connection, it would wait for the next one.
        let flushing = async { timeout(MAX_FLUSH_TIME, self.client.flush()).await };
        let _ = self.runtime.block_on(flushing);
        self.runtime.shutdown_background();
    }
}

/// Tells people what happens. Clones tell the same people.
#[derive(Clone)]
pub struct Notices {
    note: Arc<dyn Fn(&str) + Send + Sync>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Notices {
    /// What is as it should be goes to `note`, what isn't to `warn`.
    pub fn new(
        note: impl Fn(&str) + Send + Sync + 'static,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            note: Arc::new(note),
            warn: Arc::new(warn),
        }
    }

    pub(crate) fn note(&self, message: &str) {
        (self.note)(message);
    }

    pub(crate) fn warn(&self, message: &str) {
        (self.warn)(message);
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Notices")
    }
}
