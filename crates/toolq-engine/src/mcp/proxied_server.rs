//! A server that another process talks to, such as one that `toolq record` watches.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use tokio::time::timeout;

use crate::backends::BackendRunner;
use crate::command::{ChildExit, ChildProcess, ProxiedEnds};
use crate::control::RunControl;
use crate::mcp::attachments::Attachments;
use crate::mcp::connection::CallReply;
use crate::mcp::outcome::outcome_of_reply;
use crate::mcp::server_pipes::{read_chunk, write_some};
use crate::output::OutputCollector;
use crate::settings::EngineSettings;
use crate::timing::{DRAIN_TIMEOUT, SERVER_GRACE};
use toolq_core::types::{CallEnding, Effect, Leftovers, Outcome, Tool};
use toolq_mcp::CallToolResult;
use toolq_mcp::client::CallError;

/// A running program. Its bytes pass unchanged in both directions.
pub struct ProxiedServer {
    child: ChildProcess,
    ends: ProxiedEnds,
    /// What isn't written to stdin yet.
    unsent: Vec<u8>,
    closes_stdin: bool,
    has_exited: bool,
    control: RunControl,
    /// Its reapers serve the program.
    backends: BackendRunner,
}

impl ProxiedServer {
    /// Starts `argv` in the current directory, with toolq's own environment and stderr. `control` may kill it.
    ///
    /// # Errors
    /// The program can't be started.
    pub async fn start(
        argv: &[OsString],
        settings: &EngineSettings,
        control: RunControl,
    ) -> io::Result<Self> {
        let backends = BackendRunner::new(settings);
        let (_, commands) = backends.server_runners();
        let (child, ends) = commands.start_proxied(argv).await?;
        Ok(Self {
            child,
            ends,
            unsent: Vec::new(),
            closes_stdin: false,
            has_exited: false,
            control,
            backends,
        })
    }

    /// Queues bytes for stdin.
    pub fn send(&mut self, bytes: Vec<u8>) {
        if self.unsent.is_empty() {
            self.unsent = bytes;
        } else {
            self.unsent.extend(bytes);
        }
    }

    /// Returns whether everything queued has been written, so that more may be queued.
    pub fn is_ready(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Closes stdin once everything queued has been written.
    pub fn close_stdin(&mut self) {
        self.closes_stdin = true;
    }

    /// Serves the pipes until the program has written something, or has taken what was queued. Returns `None` once the
    /// program has exited and everything that it wrote has been returned. Cancel safe.
    pub async fn next_bytes(&mut self) -> Option<Vec<u8>> {
        if self.unsent.is_empty() && self.closes_stdin {
            self.ends.stdin = None;
        }
        if self.has_exited {
            // A process that it left behind may hold stdout open.
            let rest = timeout(DRAIN_TIMEOUT, read_chunk(&mut self.ends.stdout)).await;
            return rest.ok().flatten();
        }
        tokio::select! {
            biased;
            chunk = read_chunk(&mut self.ends.stdout), if self.ends.stdout.is_some() => {
                Some(chunk.unwrap_or_default())
            }
            _ = write_some(&mut self.ends.stdin, &mut self.unsent), if !self.unsent.is_empty() => {
                Some(Vec::new())
            }
            () = self.child.wait_for_exit() => {
                self.has_exited = true;
                Some(Vec::new())
            }
        }
    }

    /// Terminates the program if it still runs, and everything that it started. Returns how the program ended; `None` if
    /// that is unknown.
    ///
    /// # Errors
    /// It never ran.
    pub async fn end(mut self) -> io::Result<Option<CallEnding>> {
        self.ends.stdin = None;
        if !self.has_exited {
            self.child.terminate(SERVER_GRACE, &self.control).await;
        }
        let exit = self.child.close(Leftovers::Kill, &self.control).await;
        self.backends.close_all();
        match exit {
            ChildExit::NotStarted(errno) | ChildExit::NotConfined(errno) => {
                Err(io::Error::from_raw_os_error(errno))
            }
            ChildExit::Exited { ending, .. } => Ok(Some(ending)),
            ChildExit::Unknown => Ok(None),
        }
    }
}

/// Returns the outcome of a call of `tool` that got this answer, as if toolq itself had made the call.
pub fn outcome_of_answer(
    result: Result<CallToolResult, CallError>,
    tool: &Tool,
    settings: &EngineSettings,
) -> Outcome {
    let outputs = settings.output_dir.as_ref();
    let output = OutputCollector::for_response(tool, outputs, &settings.mask, None);
    let start_failure = |_| Outcome::NoBacking;
    let sent = (Effect::Read, true);
    let attachments = Attachments {
        dir: outputs.cloned(),
        max_bytes: tool.max_saved,
        mask: Arc::clone(&settings.mask),
        kept: RefCell::default(),
    };
    let reply = CallReply::Answered(result);
    outcome_of_reply(reply, "", sent, output, &attachments, start_failure)
}
