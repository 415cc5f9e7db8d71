//! How the messages of a connection are exchanged: over the pipes of a program, or as HTTP requests.

use crate::command::ChildExit;
use crate::control::RunControl;
use crate::http::SendGuard;
use crate::mcp::http_transport::HttpTransport;
use crate::mcp::incoming::Incoming;
use crate::mcp::process::ServerProcess;
use crate::mcp::server_life::SavedStderr;
use toolq_mcp::ProtocolVersion;
use toolq_mcp::client::{CallId, ClientSession, ToolList};

/// The transport of a connection.
pub(crate) enum Transport {
    /// The pipes of a program.
    Program(Box<ServerProcess>),
    /// Streamable HTTP.
    Endpoint(Box<HttpTransport>),
}

impl Transport {
    /// Sends the messages that `session` has for the server.
    pub(crate) fn send_output(&mut self, session: &mut ClientSession) {
        match self {
            Self::Program(process) => session.move_output_to(process.unsent()),
            Self::Endpoint(endpoint) => endpoint.send(&session.take_output()),
        }
    }

    /// Waits until something has come. Returns `None` once the server has ended. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<Incoming>> {
        match self {
            Self::Program(process) => process.next_lines().await,
            Self::Endpoint(endpoint) => Some(vec![endpoint.next_part().await?]),
        }
    }

    /// Returns whether the server has fallen so far behind that it shouldn't be sent more.
    pub(crate) fn is_behind(&self) -> bool {
        match self {
            Self::Program(process) => process.is_behind(),
            Self::Endpoint(endpoint) => endpoint.is_behind(),
        }
    }

    /// Says why no more messages come from a server that is still running.
    pub(crate) fn describe_end(&self) -> &'static str {
        match self {
            Self::Program(process) => process.describe_end(),
            Self::Endpoint(_) => "the server has ended",
        }
    }

    /// Takes the version that both sides agreed on. Returns whether calls need to know the server's tools first.
    pub(crate) fn agree_on(&mut self, version: ProtocolVersion) -> bool {
        match self {
            Self::Program(_) => false,
            Self::Endpoint(endpoint) => endpoint.agree_on(version),
        }
    }

    /// Takes the server's tools. Leaves out those that can't be called this way.
    pub(crate) fn learn_tools(&mut self, list: &mut ToolList) {
        if let Self::Endpoint(endpoint) = self {
            endpoint.learn_tools(list);
        }
    }

    /// Returns whether a call may still be sent, which it may unless it was given up. What is written to a program
    /// counts as sent from here on; an HTTP request, once there is a connection for it.
    pub(crate) fn admits(&self, guard: &SendGuard) -> bool {
        match self {
            Self::Program(_) => guard.mark_sent(),
            Self::Endpoint(_) => true,
        }
    }

    /// Keeps the guard of a call, which is marked before the first byte of the call can leave.
    pub(crate) fn guard_call(&mut self, call: CallId, guard: &SendGuard) {
        if let Self::Endpoint(endpoint) = self {
            endpoint.guard_request(call.first_request(), guard);
        }
    }

    /// Returns the process id of the server, if it is a program that was started.
    pub(crate) async fn pid(&mut self) -> Option<i32> {
        match self {
            Self::Program(process) => process.pid().await,
            Self::Endpoint(_) => None,
        }
    }

    /// As [`ServerProcess::read_stderr_tail`].
    pub(crate) async fn read_stderr_tail(&mut self) -> String {
        match self {
            Self::Program(process) => process.read_stderr_tail().await,
            Self::Endpoint(_) => String::new(),
        }
    }

    /// Returns whether the server was a program that has exited, or does so at once.
    pub(crate) async fn has_exited(&mut self) -> bool {
        match self {
            Self::Program(process) => process.has_exited().await,
            Self::Endpoint(_) => false,
        }
    }

    /// Ends the server if it is a program, and the session with it otherwise.
    pub(crate) async fn end(self, control: &RunControl) -> (ChildExit, SavedStderr) {
        match self {
            Self::Program(process) => process.end(control).await,
            Self::Endpoint(endpoint) => {
                endpoint.end(control).await;
                (ChildExit::Unknown, SavedStderr::default())
            }
        }
    }
}
