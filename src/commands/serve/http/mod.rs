//! Clients over streamable HTTP: each message is a POST to one path, and its response has the answer.
//!
//! `connections` accepts sockets; `endpoint` decides by method, path and headers what a request is, and whether it is
//! let in; `post` reads messages and answers them.

mod connections;
mod endpoint;
mod post;
mod sessions;
#[cfg(test)]
mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::time::timeout;

use crate::commands::serve::http::connections::{Connections, OUTPUT_GRACE};
use crate::commands::serve::http::endpoint::{
    AccessPolicy, BearerToken, Endpoint, PATH, WebOrigin,
};
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::ClientTransport;
use crate::output::{CommandError, StderrWriter};
use redact::Mask;
use toolq_core::os::Environment;
use toolq_engine::RunControl;
use toolq_mcp::server::ToolCatalog;

/// Serves clients over HTTP.
pub(crate) struct HttpService {
    socket: tokio::net::TcpListener,
    endpoint: Arc<Endpoint>,
    connections: Connections,
}

impl HttpService {
    /// Begins to take requests, and says on stderr where.
    ///
    /// # Errors
    /// A tool can't be called over HTTP, or the socket can't be used.
    pub(crate) fn start(
        listener: HttpListener,
        catalog: Arc<ToolCatalog>,
        calls: Arc<OpenCalls>,
    ) -> Result<Self, CommandError> {
        require_param_headers(&catalog)?;
        let address = listener.address;
        let socket =
            tokio::net::TcpListener::from_std(listener.socket).map_err(CommandError::usage)?;
        // Printed even with -q: with port 0, the user couldn't find the server otherwise.
        StderrWriter::write_text(&format!("serving on http://{address}{PATH}\n"));
        Ok(Self {
            socket,
            endpoint: Arc::new(Endpoint::new(listener.access, catalog, calls)),
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
    async fn receive(&mut self, control: &RunControl) -> Result<(), CommandError> {
        tokio::select! {
            biased;
            () = control.wait_for_external_halt() => {}
            () = self.connections.accept_all(&self.socket, &self.endpoint) => {}
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
    /// Begins to listen. The variable `token_env` has the token that requests must have, and pages of `origins` are answered.
    ///
    /// # Errors
    /// The arguments are unsafe or contradict each other, or the address can't be used.
    pub(crate) fn open(
        address: SocketAddr,
        token_env: Option<&str>,
        origins: &[String],
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        let token = token_env
            .map(|name| read_token(name, environment))
            .transpose()?;
        if token.is_none() && !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and no token keeps them out"
            );
            return Err(CommandError::usage(message).with_hint(
                "name the variable that has the token with `--token-env NAME`, or listen on 127.0.0.1",
            ));
        }
        let origins = origins.iter().map(|origin| {
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
        Ok(Self {
            address: socket.local_addr().map_err(failed)?,
            socket,
            access,
        })
    }
}

/// Reads the token from the variable that holds it.
fn read_token(name: &str, environment: &Environment) -> Result<BearerToken, CommandError> {
    let unusable = |why: &str| CommandError::usage(format!("--token-env {name}: {why}"));
    let value = environment.get(name).unwrap_or_default();
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
    Ok(BearerToken::new(token))
}
