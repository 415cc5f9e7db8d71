//! The signals that end a command that would otherwise run forever.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use toolq_core::exit::CommandError;

/// What signals have asked for so far.
#[derive(Debug, Clone, Copy, Default)]
struct Stops {
    /// The first signal, which decides about the exit code.
    first: Option<u8>,
    count: usize,
}

/// Waits for signals. Clones wait for the same.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(watch::Receiver<Stops>);

impl StopSignal {
    /// Listens to the signals with these numbers from now on, on the runtime that is entered.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn install(numbers: &[i32]) -> Result<Self, CommandError> {
        let (sender, receiver) = watch::channel(Stops::default());
        for number in numbers {
            let signals = signal(SignalKind::from_raw(*number));
            let mut signals = signals.map_err(|error| {
                let message = format!("failed to install signal handlers: {error}; nothing ran");
                CommandError::resources(message)
            })?;
            let number = u8::try_from(*number).unwrap_or_default();
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    sender.send_modify(|stops| {
                        stops.first.get_or_insert(number);
                        stops.count += 1;
                    });
                }
            });
        }
        Ok(Self(receiver))
    }

    /// Waits for the first signal, and returns its number.
    pub(crate) async fn wait(&self) -> u8 {
        self.wait_for_count(1).await
    }

    /// Waits for the second signal, whose sender doesn't want to wait until the first takes effect.
    pub(crate) async fn wait_for_second(&self) -> u8 {
        self.wait_for_count(2).await
    }

    /// Returns the first signal, if there was one.
    pub(crate) fn first(&self) -> Option<u8> {
        self.0.borrow().first
    }

    async fn wait_for_count(&self, count: usize) -> u8 {
        let mut receiver = self.0.clone();
        let waited = receiver.wait_for(|stops| stops.count >= count).await;
        match waited.map(|stops| stops.first) {
            Ok(Some(first)) => first,
            // The listeners live as long as the runtime.
            _ => std::future::pending().await,
        }
    }
}
