//! Streamable HTTP: every message is a request of its own, and messages of the server come in the responses.

use std::collections::{HashMap, VecDeque};
use std::mem;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Client, Method, Request};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use url::Url;

use crate::control::RunControl;
use crate::environment::resolve_template;
use crate::http::{HttpClients, SendGuard, build_failure, resolve_headers};
use crate::mcp::http_exchange::HttpExchange;
use crate::mcp::incoming::Incoming;
use crate::timing::{ANSWERED_DRAIN_TIMEOUT, SERVER_GRACE};
use toolq_core::os::Environment;
use toolq_core::types::{Outcome, ServerConfig, ServerEndpoint};
use toolq_mcp::client::ToolList;
use toolq_mcp::http::{
    OutgoingMessage, PROTOCOL_VERSION_HEADER, ParamHeaders, SESSION_ID_HEADER, TRACEPARENT_HEADER,
    TRACESTATE_HEADER,
};
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
    parts: mpsc::Receiver<Incoming>,
    sender: mpsc::Sender<Incoming>,
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

    /// Waits for the next part of a response. Cancel safe.
    pub(crate) async fn next_part(&mut self) -> Option<Incoming> {
        let part = self.parts.recv().await?;
        match &part {
            Incoming::Ended { request, .. } => drop(self.exchanges.remove(request)),
            Incoming::SessionBegan(id) if self.version.is_none() => {
                self.session_id = Some(id.clone());
            }
            Incoming::HandshakeEnded => {
                self.is_ending_handshake = false;
                self.send_waiting();
            }
            _ => {}
        }
        Some(part)
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

// The address of a server that runs elsewhere, with the variables of the environment filled in.

/// Where a server is, and how requests reach it.
pub(crate) struct HttpEndpoint {
    pub(crate) client: Client,
    /// What errors call the server.
    pub(crate) origin: String,
    url: Url,
    headers: HeaderMap,
}

impl HttpEndpoint {
    /// Fills in the variables. Nothing is sent.
    ///
    /// # Errors
    /// The outcome of the call, because a variable is missing or has a value that can't be used.
    pub(crate) fn resolve(
        server: &ServerConfig,
        endpoint: &ServerEndpoint,
        clients: &HttpClients,
        environment: &Environment,
    ) -> Result<Self, Outcome> {
        let origin = format!("MCP server {:?}", server.name);
        let url = resolve_template(&endpoint.url, environment)?;
        let url = Url::parse(&url).ok();
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let Some(mut url) = url.filter(is_web) else {
            let detail = "its `url` isn't the address of a web server";
            return Err(build_failure(origin, detail.to_owned()));
        };
        url.set_fragment(None);
        let declared = endpoint.headers.iter();
        let declared = declared.map(|(name, value)| (name, resolve_template(value, environment)));
        let headers = resolve_headers(declared, &origin, true)?;
        Ok(Self {
            client: clients.get_plain(&url, server.startup)?,
            origin,
            url,
            headers,
        })
    }

    /// Returns a request without a body.
    pub(crate) fn request(&self, method: Method) -> Request {
        let mut request = Request::new(method, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        request
    }
}

// The requests of a connection, with the headers that its server needs.

impl HttpTransport {
    /// Builds the request that carries a message. `guard` is marked before its first byte can leave.
    pub(super) fn build_request(
        &self,
        message: &OutgoingMessage,
        guard: Option<&SendGuard>,
    ) -> Request {
        let mut request = self.endpoint.request(Method::POST);
        let headers = request.headers_mut();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let has_own_trace = headers.contains_key(TRACEPARENT_HEADER);
        for (name, value) in message.headers(self.version, &self.param_headers) {
            // A trace in tools.yaml is meant.
            if has_own_trace && matches!(&*name, TRACEPARENT_HEADER | TRACESTATE_HEADER) {
                continue;
            }
            // Both were checked or encoded, so nothing is left out here.
            if let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), HeaderValue::from_str(&value))
            {
                headers.insert(name, value);
            }
        }
        let begins_session = matches!(
            message.method.as_deref(),
            Some("initialize" | "server/discover")
        );
        if let Some(id) = self.session_id.as_ref().filter(|_| !begins_session) {
            headers.insert(SESSION_ID_HEADER, id.clone());
        }
        let body = message.body.clone();
        *request.body_mut() = Some(match guard {
            Some(guard) => guard.wrap_body(body.into()),
            None => Body::from(body),
        });
        request
    }

    /// Returns the request for the rest of a stream, which exists only in the legacy era, after the handshake.
    pub(super) fn build_resumption(&self) -> Option<Request> {
        let version = self.version?;
        if version.era() != ProtocolEra::Legacy {
            return None;
        }
        let mut request = self.endpoint.request(Method::GET);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let version = HeaderValue::from_static(version.as_str());
        headers.insert(PROTOCOL_VERSION_HEADER, version);
        if let Some(id) = &self.session_id {
            headers.insert(SESSION_ID_HEADER, id.clone());
        }
        Some(request)
    }
}
