//! Sockets: how many there may be, how long they may be silent, and how they end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::commands::serve::http::CLIENT_TIMEOUT;
use crate::commands::serve::http::endpoint::OpenEndpoint;

/// How many connections there may be, if the process may open that many files. Further ones wait.
const MAX_CONNECTIONS: u64 = 1024;
/// The longest headers, and the largest piece of a body that is read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// How many headers a request may have.
const MAX_HEADERS: usize = 100;
/// How long to wait when a connection can't be accepted, as when no descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often to look for sessions that nobody uses.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);

/// The connections of all clients.
pub(super) struct Connections {
    tasks: JoinSet<()>,
    permits: Arc<Semaphore>,
    /// `true` once the connections are to end with the response that they are at.
    is_closing: watch::Sender<bool>,
}

impl Connections {
    pub(super) fn new() -> Self {
        // Calls need descriptors, too.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let permits = (files / 2).clamp(1, MAX_CONNECTIONS);
        Self {
            tasks: JoinSet::new(),
            permits: Arc::new(Semaphore::new(usize::try_from(permits).unwrap_or(1))),
            is_closing: watch::Sender::new(false),
        }
    }

    /// Accepts connections for as long as it is polled.
    pub(super) async fn accept_all(&mut self, socket: &TcpListener, endpoint: &Arc<OpenEndpoint>) {
        let mut sweep = interval(SWEEP_INTERVAL);
        loop {
            let permits = Arc::clone(&self.permits);
            tokio::select! {
                (accepted, permit) = accept(socket, permits) => {
                    self.serve(accepted, permit, Arc::clone(endpoint));
                }
                Some(_) = self.tasks.join_next() => {}
                _ = sweep.tick() => endpoint.drop_idle_sessions(),
            }
        }
    }

    /// Lets each connection send the response that it is at, and waits for that.
    pub(super) async fn close(mut self) {
        self.is_closing.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }

    fn serve(
        &mut self,
        (stream, peer): (TcpStream, SocketAddr),
        permit: OwnedSemaphorePermit,
        endpoint: Arc<OpenEndpoint>,
    ) {
        let is_closing = self.is_closing.subscribe();
        self.tasks.spawn(async move {
            // A connection without these options works, too.
            let _ = set_options(&stream);
            if let Ok(local) = stream.local_addr() {
                serve_connection(stream, (local, peer), endpoint, is_closing).await;
            }
            drop(permit);
        });
    }
}

/// Lets small answers out at once, and ends the connection of a client that reads nothing.
fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        let timeout = u32::try_from(CLIENT_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        rustix::net::sockopt::set_tcp_user_timeout(stream, timeout)?;
    }
    Ok(())
}

/// Accepts the next connection, once there is room for it.
async fn accept(
    socket: &TcpListener,
    permits: Arc<Semaphore>,
) -> ((TcpStream, SocketAddr), OwnedSemaphorePermit) {
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            // Nothing closes the semaphore.
            std::future::pending().await
        };
        match socket.accept().await {
            Ok(accepted) => return (accepted, permit),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of one connection, one after another, until one side ends it.
async fn serve_connection(
    stream: TcpStream,
    (local, peer): (SocketAddr, SocketAddr),
    endpoint: Arc<OpenEndpoint>,
    mut is_closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let endpoint = Arc::clone(&endpoint);
        async move { Ok::<_, hyper::Error>(endpoint.answer(request, local, peer.ip()).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Whatever breaks a connection, nobody is left to be told.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = is_closing.wait_for(|is_closing| *is_closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
