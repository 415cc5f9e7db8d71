//! The connection to NATS.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::names::QueueName;
use crate::queue_error;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;

/// How long to wait for a server that answers.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the answer to one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time between two attempts to reconnect.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Where NATS is, and how to log in.
#[derive(Debug, Clone)]
pub struct NatsSettings {
    /// One URL, or several with commas. User and password, or a token, may be part of it.
    pub url: String,
    /// A file with the JWT and the seed of a user.
    pub credentials: Option<PathBuf>,
    /// Certificates of authorities to trust in addition to the system's.
    pub tls_ca: Option<PathBuf>,
    /// The certificate and the key to present.
    pub tls_identity: Option<(PathBuf, PathBuf)>,
}

/// Builds the runtime of the connection. It is apart from the runtime of calls, so that a thread that waits for a record to be
/// published never keeps the connection from publishing it.
///
/// # Errors
/// The system has no threads or descriptors left.
fn build_nats_runtime() -> Result<Runtime, CommandError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("toolq-nats")
        .enable_all()
        .build();
    runtime.map_err(|error| {
        let message = format!("failed to start a thread for NATS: {error}; nothing ran");
        CommandError::resources(message)
    })
}

/// Connects on `runtime`. The connection is made again whenever it breaks.
///
/// # Errors
/// No server can be reached, it refuses the credentials, or it is from before 2.10.
async fn connect(
    settings: &NatsSettings,
    runtime: &Handle,
    notices: &Notices,
) -> Result<Client, CommandError> {
    let addresses: Vec<String> = settings.url.split(',').map(str::to_owned).collect();
    let options = connect_options(settings, notices).await?;
    let options = log_in(options, &addresses);
    let connecting = runtime.spawn(async move { options.connect(addresses).await });
    let connected = match connecting.await {
        Ok(connected) => connected.map_err(|error| error.to_string()),
        Err(panicked) => Err(panicked.to_string()),
    };
    let client = connected.map_err(|why| {
        let hint = connect_hint(&why);
        let what = format!("NATS can't be reached at {}", masked_url(&settings.url));
        queue_error(&what, why).with_hint(hint)
    })?;
    let version = client.server_info().version;
    if is_too_old(&version) {
        let what = format!("{} can't be used", masked_url(&settings.url));
        let why = format!("it is nats-server {version}, and queues need 2.10 or later");
        return Err(queue_error(&what, why));
    }
    Ok(client)
}

/// Returns whether a server is from before 2.10, whose groups don't keep the order of messages that they have confirmed.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version
        .split('.')
        .map_while(|part| part.parse::<u64>().ok());
    (numbers.next(), numbers.next()) < (Some(2), Some(10))
}

/// Logs in with what the first URL with a user says: a user and a password, or a token. The library leaves that out.
fn log_in(options: ConnectOptions, urls: &[String]) -> ConnectOptions {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut addresses = urls.iter().filter_map(|url| url.parse::<ServerAddr>().ok());
    let Some(address) = addresses.find(ServerAddr::has_user_pass) else {
        return options;
    };
    match (address.username(), address.password()) {
        (Some(user), Some(password)) => options.user_and_password(decode(user), decode(password)),
        (Some(token), None) => options.token(decode(token)),
        (None, _) => options,
    }
}

fn connect_hint(why: &str) -> &'static str {
    let why = why.to_ascii_lowercase();
    if why.contains("authorization") || why.contains("authentication") {
        "log in with `--credentials FILE`, or with a user and a password in the URL: `nats://USER:PASSWORD@HOST`"
    } else if why.contains("tls") || why.contains("certificate") {
        "a server with TLS needs `--tls-ca FILE`, unless its certificate is one that the system trusts, and perhaps `--tls-cert` and `--tls-key`"
    } else {
        "name a server with `--nats URL` or NATS_URL, such as `nats://127.0.0.1:4222`; `nats-server -js` starts one here"
    }
}

async fn connect_options(
    settings: &NatsSettings,
    notices: &Notices,
) -> Result<ConnectOptions, CommandError> {
    let (notices, is_lost) = (notices.clone(), Arc::new(AtomicBool::new(false)));
    let mut options = ConnectOptions::new()
        .name("toolq")
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .reconnect_delay_callback(|attempts| {
            let exponent = u32::try_from(attempts.min(10)).unwrap_or(10);
            Duration::from_millis(10 << exponent).min(MAX_RECONNECT_DELAY)
        })
        .event_callback(move |event| {
            let (notices, is_lost) = (notices.clone(), Arc::clone(&is_lost));
            async move { report_event(&event, &is_lost, &notices) }
        });
    if let Some(ca) = &settings.tls_ca {
        require_readable(ca)?;
        options = options.require_tls(true).add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &settings.tls_identity {
        require_readable(certificate)?;
        require_readable(key)?;
        options = options.require_tls(true);
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    match &settings.credentials {
        Some(path) => options.credentials_file(path).await.map_err(|error| {
            let path = path.display();
            CommandError::usage(format!("the credentials {path} can't be read: {error}"))
        }),
        None => Ok(options),
    }
}

/// The library names no file that it can't read.
fn require_readable(path: &Path) -> Result<(), CommandError> {
    let opened = File::open(path).map(drop);
    opened
        .map_err(|error| CommandError::usage(format!("{} can't be read: {error}", path.display())))
}

fn report_event(event: &Event, is_lost: &AtomicBool, notices: &Notices) {
    match event {
        Event::Disconnected => {
            is_lost.store(true, Ordering::SeqCst);
            notices.warn("the connection to NATS is lost");
        }
        Event::Connected if is_lost.swap(false, Ordering::SeqCst) => {
            notices.note("the connection to NATS is back");
        }
        Event::ServerError(error) => notices.warn(&format!("NATS: {error}")),
        _ => {}
    }
}

/// Leaves out what logs in.
fn masked_url(urls: &str) -> String {
    let shown = urls.split(',').map(|url| match url.rsplit_once('@') {
        Some((login, host)) => {
            let scheme = login.split_once("://").map(|(scheme, _)| scheme);
            format!("{}://{host}", scheme.unwrap_or("nats"))
        }
        None => url.to_owned(),
    });
    shown.collect::<Vec<_>>().join(",")
}

// What the commands of a queue have in common: its name, the connection with its runtime, and the signals that end it.

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
#[derive(Clone, derive_more::Debug)]
#[debug("Notices")]
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

/// What signals have asked for so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stops {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_2_10_are_too_old() {
        for version in ["2.9.10", "2.9.25", "1.99.0", ""] {
            assert!(is_too_old(version), "{version}");
        }
        for version in ["2.10.0", "2.15.1-beta.1", "3.0.0"] {
            assert!(!is_too_old(version), "{version}");
        }
    }
}
