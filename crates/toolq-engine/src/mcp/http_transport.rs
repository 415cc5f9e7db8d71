//! Streamable HTTP: every message is a request of its own, and messages of the server come in the responses.

mod requests;

use std::collections::{HashMap, VecDeque};
use std::mem;

use reqwest::Method;
use reqwest::header::HeaderValue;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::control::RunControl;
use crate::http::SendGuard;
use crate::mcp::http_endpoint::HttpEndpoint;
use crate::mcp::http_exchange::{HttpExchange, ResponsePart};
use crate::mcp::transport::HttpEvent;
use crate::timing::{ANSWERED_DRAIN_TIMEOUT, SERVER_GRACE};
use toolq_mcp::client::ToolList;
use toolq_mcp::http::{OutgoingMessage, ParamHeaders, SESSION_ID_HEADER};
use toolq_mcp::{ProtocolEra, ProtocolVersion};

/// How many parts of responses may wait to be handled. A server that sends more has to wait.
const MAX_WAITING_PARTS: usize = 16;
/// How many requests may be under way before the server's own ones get no more answers.
const MAX_WAITING_TASKS: usize = 64;

/// A connection to a server that runs elsewhere.
pub(crate) struct HttpTransport {
    endpoint: HttpEndpoint,
    /// What both sides agreed on.
    version: Option<ProtocolVersion>,
    /// The session that the server began, in the legacy era.
    session_id: Option<HeaderValue>,
    /// The headers that the tools ask for, by their names.
    param_headers: HashMap<String, ParamHeaders>,
    /// Who wants to know when a request is sent.
    guards: HashMap<u64, SendGuard>,
    /// Messages that have to wait until the server knows that the handshake is over.
    unsent: VecDeque<OutgoingMessage>,
    is_ending_handshake: bool,
    tasks: JoinSet<()>,
    /// The tasks of messages that get no response.
    notifications: JoinSet<()>,
    /// The tasks of requests whose responses haven't ended.
    exchanges: HashMap<u64, AbortHandle>,
    parts: mpsc::Receiver<ResponsePart>,
    sender: mpsc::Sender<ResponsePart>,
}

impl HttpTransport {
    pub(crate) fn new(endpoint: HttpEndpoint) -> Self {
        let (sender, parts) = mpsc::channel(MAX_WAITING_PARTS);
        Self {
            endpoint,
            version: None,
            session_id: None,
            param_headers: HashMap::new(),
            guards: HashMap::new(),
            unsent: VecDeque::new(),
            is_ending_handshake: false,
            tasks: JoinSet::new(),
            notifications: JoinSet::new(),
            exchanges: HashMap::new(),
            parts,
            sender,
        }
    }

    /// Sends messages, each on a line of its own.
    pub(crate) fn send(&mut self, messages: &[u8]) {
        self.unsent.extend(OutgoingMessage::split(messages));
        self.send_waiting();
    }

    /// Keeps `guard` for a request, and marks it before the first byte of the request can leave.
    pub(crate) fn guard_request(&mut self, request: u64, guard: &SendGuard) {
        self.guards.insert(request, guard.clone());
    }

    /// Takes the version that both sides agreed on. Returns whether calls need to know the server's tools, which may ask
    /// for headers.
    pub(crate) fn agree_on(&mut self, version: ProtocolVersion) -> bool {
        self.version = Some(version);
        let is_modern = version.era() == ProtocolEra::Modern;
        if is_modern {
            self.session_id = None;
        }
        is_modern
    }

    /// Takes the server's tools. Leaves out those whose headers aren't allowed.
    pub(crate) fn learn_tools(&mut self, list: &mut ToolList) {
        if self.version.map(ProtocolVersion::era) != Some(ProtocolEra::Modern) {
            return;
        }
        for tool in mem::take(&mut list.tools) {
            match ParamHeaders::from_schema(&tool.input_schema) {
                Ok(headers) => {
                    self.param_headers.insert(tool.name.clone(), headers);
                    list.tools.push(tool);
                }
                Err(why) => list
                    .problems
                    .push(format!("the tool {} is left out: {why}", tool.name)),
            }
        }
    }

    /// Waits for the next event. Cancel safe.
    pub(crate) async fn next_event(&mut self) -> Option<HttpEvent> {
        loop {
            match self.parts.recv().await? {
                ResponsePart::Event(event) => {
                    if let HttpEvent::Ended { request, .. } = &event {
                        self.exchanges.remove(request);
                    }
                    return Some(event);
                }
                ResponsePart::SessionBegan(id) => {
                    if self.version.is_none() {
                        self.session_id = Some(id);
                    }
                }
                ResponsePart::HandshakeEnded => {
                    self.is_ending_handshake = false;
                    self.send_waiting();
                }
            }
        }
    }

    /// Stops reading the response to a request that has its answer. The response gets some time to end, so that its
    /// connection can be used again.
    pub(crate) fn finish_exchange(&mut self, request: u64) {
        if let Some(exchange) = self.exchanges.remove(&request)
            && !exchange.is_finished()
        {
            self.tasks.spawn(async move {
                sleep(ANSWERED_DRAIN_TIMEOUT).await;
                exchange.abort();
            });
        }
    }

    /// Ends all requests, and the session. The server may forget the session or not. It still gets notifications that are
    /// on their way: one may cancel a call.
    pub(crate) async fn end(mut self, control: &RunControl) {
        self.tasks.abort_all();
        // Nobody receives what the server answers to notifications.
        self.parts.close();
        let ended = async {
            while self.notifications.join_next().await.is_some() {}
            if let Some(session_id) = self.session_id.take() {
                let mut request = self.endpoint.request(Method::DELETE);
                request.headers_mut().insert(SESSION_ID_HEADER, session_id);
                // A session that isn't deleted ends by itself.
                let _ = self.endpoint.client.execute(request).await;
            }
        };
        tokio::select! {
            _ = timeout(SERVER_GRACE, ended) => {}
            () = control.wait_for_kill() => {}
        }
    }

    /// Returns whether so many requests are waiting that the server's own requests get no more answers. In the modern
    /// era, a server must not make any.
    pub(crate) fn is_behind(&self) -> bool {
        self.version.map(ProtocolVersion::era) == Some(ProtocolEra::Modern)
            || self.tasks.len() + self.notifications.len() >= MAX_WAITING_TASKS
    }

    /// Forgets the session, which the server doesn't know any more.
    pub(crate) fn forget_session(&mut self) {
        self.session_id = None;
    }

    fn send_waiting(&mut self) {
        // Tasks that have ended are kept until they are joined.
        while self.tasks.try_join_next().is_some() {}
        while self.notifications.try_join_next().is_some() {}
        while !self.is_ending_handshake
            && let Some(message) = self.unsent.pop_front()
        {
            if let Some(request) = message.cancels {
                self.cancel(request);
                // In the modern era, the end of the connection says it.
                if self.version.map(ProtocolVersion::era) == Some(ProtocolEra::Modern) {
                    continue;
                }
            }
            self.begin_exchange(message);
        }
    }

    /// Drops a request, and with it the connection on which its response comes.
    fn cancel(&mut self, request: u64) {
        self.guards.remove(&request);
        if let Some(exchange) = self.exchanges.remove(&request) {
            exchange.abort();
        }
    }

    fn begin_exchange(&mut self, message: OutgoingMessage) {
        let guard = message
            .request
            .and_then(|request| self.guards.remove(&request));
        let request = self.build_request(&message, guard.as_ref());
        let method = message.method.unwrap_or_default();
        self.is_ending_handshake = method == "notifications/initialized";
        let exchange = HttpExchange {
            client: self.endpoint.client.clone(),
            origin: self.endpoint.origin.clone(),
            request: message.request,
            method,
            has_session: request.headers().contains_key(SESSION_ID_HEADER),
            resumption: self.build_resumption(),
            guard,
            parts: self.sender.clone(),
        };
        let work = exchange.run(request);
        match message.request {
            Some(id) => {
                self.exchanges.insert(id, self.tasks.spawn(work));
            }
            None => {
                self.notifications.spawn(work);
            }
        }
    }
}
