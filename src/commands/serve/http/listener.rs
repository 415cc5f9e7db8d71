//! Where to listen and whom to let in, as the command line says.

use std::net::{SocketAddr, TcpListener};

use crate::args::serve::ServeArguments;
use crate::commands::serve::http::access::{AccessPolicy, BearerToken, WebOrigin};
use crate::context::CommandContext;
use crate::output::CommandError;
use redact::Mask;

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
