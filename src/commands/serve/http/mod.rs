//! Clients over streamable HTTP: each message is a POST to one path, and its response has the answer.
//!
//! `connections` accepts sockets; `endpoint` decides by method, path and headers what a request is, with `access`;
//! `post` reads messages and answers them by a `reply`. Clients of the legacy era are in `sessions`.

mod access;
mod connections;
mod endpoint;
mod listener;
mod post;
mod reply;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::timeout;
use toolq_mcp::server::{SharedCatalog, ToolCatalog};

use crate::commands::serve::http::connections::Connections;
use crate::commands::serve::http::endpoint::Endpoint;
pub(crate) use crate::commands::serve::http::listener::HttpListener;
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::transport::ClientTransport;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_engine::RunControl;

/// The path of all requests.
const PATH: &str = "/mcp";

/// How long a client may keep the server waiting: for the headers of its next request, for a body, and for room to send.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long clients may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Serves clients over HTTP.
pub(crate) struct HttpService {
    socket: TcpListener,
    endpoint: Option<Endpoint>,
    connections: Connections,
}

impl HttpService {
    /// Begins to take requests, and says on stderr where. `mask` is for errors of the protocol.
    ///
    /// # Errors
    /// A tool can't be called over HTTP, or the socket can't be used.
    pub(crate) fn start(
        listener: HttpListener,
        catalog: SharedCatalog,
        mask: Arc<Mask>,
    ) -> Result<Self, CommandError> {
        require_param_headers(&catalog.current())?;
        let address = listener.address;
        let socket = TcpListener::from_std(listener.socket).map_err(CommandError::usage)?;
        // Printed even with -q: with port 0, the user couldn't find the server otherwise.
        StderrWriter::write_text(&format!("serving on http://{address}{PATH}\n"));
        Ok(Self {
            socket,
            endpoint: Some(Endpoint::new(listener.access, catalog, mask)),
            connections: Connections::new(),
        })
    }
}

/// # Errors
/// A tool can't be called over HTTP.
pub(crate) fn require_param_headers(catalog: &ToolCatalog) -> Result<(), CommandError> {
    let headers = catalog.param_headers();
    headers.map(drop).map_err(|(tool, why)| {
        CommandError::usage(format!("{tool} can't be called over HTTP: {why}")).with_hint(
            "correct `x-mcp-header` in its input_schema, or leave the tool out with `--only`",
        )
    })
}

impl ClientTransport for HttpService {
    /// Handles requests until the run is stopped.
    async fn receive(
        &mut self,
        calls: &Arc<OpenCalls>,
        control: &RunControl,
    ) -> Result<(), CommandError> {
        let Some(endpoint) = self.endpoint.take() else {
            return Ok(());
        };
        let endpoint = Arc::new(endpoint.with_calls(Arc::clone(calls)));
        tokio::select! {
            biased;
            () = control.wait_for_external_halt() => {}
            () = self.connections.accept_all(&self.socket, &endpoint) => {}
        }
        Ok(())
    }

    fn report_end(&self) {}

    async fn finish(self) -> Result<(), CommandError> {
        drop(self.socket);
        // A client that doesn't read its answers keeps only itself waiting.
        let _ = timeout(OUTPUT_GRACE, self.connections.close()).await;
        Ok(())
    }
}
