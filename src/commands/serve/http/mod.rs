//! Clients over streamable HTTP: each message is a POST to one path, and its response has the answer.
//!
//! `connections` accepts sockets; `endpoint` decides by method, path and headers what a request is, with `access`;
//! `post` reads messages and answers them by a `reply`. Clients of the legacy era are in `sessions`.

mod access;
mod connections;
mod endpoint;
mod post;
#[cfg(test)]
mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::commands::serve::http::access::{AccessPolicy, BearerToken, WebOrigin};
use crate::commands::serve::http::connections::Connections;
use crate::commands::serve::http::endpoint::Endpoint;
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::{ClientTransport, ServeArguments};
use crate::context::CommandContext;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_engine::RunControl;
use toolq_mcp::server::ToolCatalog;

/// The path of all requests.
const PATH: &str = "/mcp";

/// How long a client may keep the server waiting: for the headers of its next request, for a body, and for room to send.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long clients may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Serves clients over HTTP.
pub(crate) struct HttpService {
    socket: tokio::net::TcpListener,
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
        catalog: Arc<ToolCatalog>,
        mask: Arc<Mask>,
    ) -> Result<Self, CommandError> {
        require_param_headers(&catalog)?;
        let address = listener.address;
        let socket =
            tokio::net::TcpListener::from_std(listener.socket).map_err(CommandError::usage)?;
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
fn require_param_headers(catalog: &ToolCatalog) -> Result<(), CommandError> {
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

// Where to listen and whom to let in, as the command line says.

/// A socket that clients can already connect to, although their requests aren't answered yet.
pub(crate) struct HttpListener {
    pub(super) socket: TcpListener,
    /// With the port that the system chose, if it was to choose one.
    pub(super) address: SocketAddr,
    pub(super) access: AccessPolicy,
}

impl HttpListener {
    /// Begins to listen if the arguments say so.
    ///
    /// # Errors
    /// The arguments are unsafe or contradict each other, or the address can't be used.
    pub(crate) fn open(
        arguments: &ServeArguments,
        context: &CommandContext,
    ) -> Result<Option<Self>, CommandError> {
        let Some(address) = arguments.http else {
            return Ok(None);
        };
        let token = read_token(arguments, context)?;
        if token.is_none() && !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and no token keeps them out"
            );
            return Err(CommandError::usage(message).with_hint(
                "name the variable that has the token with `--token-env NAME`, or listen on 127.0.0.1",
            ));
        }
        let origins = arguments.origin.iter().map(|origin| {
            WebOrigin::parse(origin)
                .map_err(|why| CommandError::usage(format!("--origin {origin}: {why}")))
        });
        let access = AccessPolicy {
            token,
            origins: origins.collect::<Result<_, _>>()?,
        };
        let failed = |error| CommandError::usage(format!("can't listen on {address}: {error}"));
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Some(Self {
            address: socket.local_addr().map_err(failed)?,
            socket,
            access,
        }))
    }
}

/// Reads the token from the variable that holds it.
fn read_token(
    arguments: &ServeArguments,
    context: &CommandContext,
) -> Result<Option<BearerToken>, CommandError> {
    let Some(name) = &arguments.token_env else {
        return Ok(None);
    };
    let unusable = |why: &str| CommandError::usage(format!("--token-env {name}: {why}"));
    let value = context.environment.get(name).unwrap_or_default();
    let token = value.trim();
    if token.is_empty() {
        return Err(unusable("the variable is unset or empty"));
    }
    // A header has nothing else, and a shorter secret isn't masked.
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable("a token has only ASCII characters, and no spaces"));
    }
    if token.len() < Mask::MIN_SECRET_BYTES {
        let why = format!(
            "the token is too short: {} characters at least",
            Mask::MIN_SECRET_BYTES
        );
        return Err(unusable(&why).with_hint("`openssl rand -hex 32` makes one"));
    }
    Ok(Some(BearerToken::new(token)))
}
