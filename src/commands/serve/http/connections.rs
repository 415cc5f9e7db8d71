//! Sockets: how many there may be, how long they may be silent, and how they end.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::commands::serve::http::endpoint::Endpoint;
use crate::commands::serve::http::post::{CLIENT_TIMEOUT, HttpReplyBody};

/// How many connections there may be, if the process may open that many files. For a further one, an idle one ends.
const MAX_CONNECTIONS: u64 = 1024;
/// The longest headers, and the largest piece of a body that is read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// How many headers a request may have.
const MAX_HEADERS: usize = 100;
/// How long to wait for room: until an idle connection has ended, or until a descriptor is left.
const ROOM_TIMEOUT: Duration = Duration::from_millis(100);

/// The connections of all clients.
pub(super) struct Connections {
    tasks: JoinSet<()>,
    permits: Arc<Semaphore>,
    idle: Arc<IdleConnections>,
    /// `true` once the connections are to end with the response that they are at.
    is_closing: watch::Sender<bool>,
}

/// What answers the requests of one connection.
#[derive(Clone)]
struct ConnectionService {
    endpoint: Arc<Endpoint>,
    activity: Arc<ConnectionActivity>,
    /// The address to which the client has connected.
    local: SocketAddr,
    peer: IpAddr,
}

impl Connections {
    pub(super) fn new() -> Self {
        // Calls need descriptors, too.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let permits = (files / 2).clamp(1, MAX_CONNECTIONS);
        Self {
            tasks: JoinSet::new(),
            permits: Arc::new(Semaphore::new(usize::try_from(permits).unwrap_or(1))),
            idle: Arc::default(),
            is_closing: watch::Sender::new(false),
        }
    }

    /// Accepts connections for as long as it is polled.
    pub(super) async fn accept_all(&mut self, socket: &TcpListener, endpoint: &Arc<Endpoint>) {
        loop {
            match socket.accept().await {
                Ok(accepted) => {
                    let permit = self.make_room().await;
                    self.serve(accepted, permit, Arc::clone(endpoint));
                }
                Err(_) => sleep(ROOM_TIMEOUT).await,
            }
            // The others that have ended need no more memory.
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Waits until there may be one connection more. If need be, those that are idle end, one after another.
    async fn make_room(&self) -> OwnedSemaphorePermit {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return permit;
        }
        loop {
            self.idle.end_oldest();
            let permit = Arc::clone(&self.permits).acquire_owned();
            // Nothing closes the semaphore.
            if let Ok(Ok(permit)) = timeout(ROOM_TIMEOUT, permit).await {
                return permit;
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
        endpoint: Arc<Endpoint>,
    ) {
        let is_closing = self.is_closing.subscribe();
        let activity = ConnectionActivity::new(Arc::clone(&self.idle));
        self.tasks.spawn(async move {
            // A connection without these options works, too.
            let _ = set_options(&stream);
            if let Ok(local) = stream.local_addr() {
                let service = ConnectionService {
                    endpoint,
                    activity,
                    local,
                    peer: peer.ip(),
                };
                serve_connection(stream, service, is_closing).await;
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

/// Answers the requests of one connection, one after another, until one side ends it.
async fn serve_connection(
    stream: TcpStream,
    service: ConnectionService,
    mut is_closing: watch::Receiver<bool>,
) {
    let activity = Arc::clone(&service.activity);
    let service = service_fn(move |request| service.clone().answer(request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // An error isn't reported: once the connection breaks, the client is gone.
    let patience = tokio::select! {
        _ = connection.as_mut() => return,
        _ = is_closing.wait_for(|is_closing| *is_closing) => OUTPUT_GRACE,
        () = activity.wait_for_end() => ROOM_TIMEOUT,
    };
    connection.as_mut().graceful_shutdown();
    let _ = timeout(patience, connection).await;
}

impl ConnectionService {
    async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<TrackedBody<HttpReplyBody>>, Infallible> {
        let open = self.activity.begin_request();
        let response = self.endpoint.answer(request, self.local, self.peer).await;
        Ok(response.map(|body| TrackedBody {
            body,
            _request: open,
        }))
    }
}

// Connections between two requests: when a new client finds no room, the one that was silent for longest makes room.

/// The connections without a request, in the order in which they became silent.
#[derive(Default)]
struct IdleConnections(Mutex<IdleQueue>);

#[derive(Default)]
struct IdleQueue {
    next_place: u64,
    ends: BTreeMap<u64, Arc<Notify>>,
}

/// Whether a connection has a request.
struct ConnectionActivity {
    all: Arc<IdleConnections>,
    end: Arc<Notify>,
    /// The place in the queue, if there is no request.
    place: Mutex<Option<u64>>,
}

/// Keeps a connection out of the queue.
struct OpenRequest(Arc<ConnectionActivity>);

/// A response's body, whose request is open until all of it was taken.
struct TrackedBody<B> {
    body: B,
    _request: OpenRequest,
}

impl IdleConnections {
    /// Tells the connection that was silent for longest to end.
    fn end_oldest(&self) {
        if let Some((_, end)) = self.0.lock().ends.pop_first() {
            end.notify_one();
        }
    }

    fn enter(&self, end: &Arc<Notify>) -> u64 {
        let mut queue = self.0.lock();
        let place = queue.next_place;
        queue.next_place += 1;
        queue.ends.insert(place, Arc::clone(end));
        place
    }

    fn leave(&self, place: u64) {
        self.0.lock().ends.remove(&place);
    }
}

impl ConnectionActivity {
    /// Begins with a connection that hasn't sent anything yet.
    pub(crate) fn new(all: Arc<IdleConnections>) -> Arc<Self> {
        let end = Arc::new(Notify::new());
        let place = all.enter(&end);
        Arc::new(Self {
            all,
            end,
            place: Mutex::new(Some(place)),
        })
    }

    /// A request has come.
    fn begin_request(self: &Arc<Self>) -> OpenRequest {
        if let Some(place) = self.place.lock().take() {
            self.all.leave(place);
        }
        OpenRequest(Arc::clone(self))
    }

    /// Waits until the connection is to make room.
    async fn wait_for_end(&self) {
        loop {
            self.end.notified().await;
            // A request may have come at the last moment.
            if self.place.lock().is_some() {
                return;
            }
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let activity = &self.0;
        *activity.place.lock() = Some(activity.all.enter(&activity.end));
    }
}

impl Drop for ConnectionActivity {
    fn drop(&mut self) {
        if let Some(place) = self.place.lock().take() {
            self.all.leave(place);
        }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How long clients may take to read the last answers.
pub(crate) const OUTPUT_GRACE: Duration = Duration::from_secs(2);
