//! The tools of one tools.yaml, ready to answer.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncRead;
use tokio::sync::Mutex;

use toolq_core::answer::{DeclarationFormat, render_declarations};
use toolq_core::types::DescribeResult;

use crate::answer::AnswerRequest;
use crate::builder::ToolqBuilder;
use crate::error::Error;
use crate::message::read_message;
use crate::plan::Plan;
use crate::session::{EmbeddedSession, ToolSet};
use crate::stream::StreamAnswerRequest;

/// Whether this program called [`supervise`], and so may be started again as a supervisor.
static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Answers the tool calls of a language model.
///
/// Messages are answered one after another, each in its own turn; calls within a message run in parallel where the tools
/// file allows it. Methods take `&self`, so one `Toolq` can be shared by tasks: a second message waits until the first is
/// answered.
///
/// Needs a Tokio runtime with IO and time enabled. Each runtime that answers gets its own processes and connections. A
/// message can be up to 256 MiB long.
pub struct Toolq {
    pub(crate) set: ToolSet,
    pub(crate) max_message_bytes: u64,
    pub(crate) warnings: Vec<String>,
    pub(crate) session: Mutex<EmbeddedSession>,
}

impl Toolq {
    /// Returns a builder with the defaults: no log, and the concurrency of the tools file.
    pub fn builder() -> ToolqBuilder {
        ToolqBuilder::default()
    }

    /// Returns warnings about the tools file, sandboxes that this system can't apply as a whole, and calls that an earlier run
    /// left in doubt.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the declarations of all tools, for the `tools` of a request to the model. Runs the `describe` commands of
    /// tools that have one, once.
    ///
    /// # Errors
    /// [`Error::UndescribedTool`] if a tool fails to describe itself, and [`Error::UnlistedServer`] if a server that tools.lock
    /// doesn't have can't be asked for its tools.
    pub async fn declarations(&self, format: DeclarationFormat) -> Result<String, Error> {
        self.session.lock().await.describe_tools().await?;
        for server in &self.set.tools.unlocked {
            let reason = match server.listing() {
                Some(Ok(_)) => continue,
                Some(Err(why)) => why.to_owned(),
                None => "it didn't answer".to_owned(),
            };
            let server = server.server.name.clone();
            return Err(Error::UnlistedServer { server, reason });
        }
        for tool in &self.set.tools.known_tools() {
            let reason = match tool.describe_result() {
                Some(DescribeResult::Err(reason)) => reason.clone(),
                _ if tool.needs_describe() => "its `describe` command didn't finish".to_owned(),
                _ => continue,
            };
            let tool = tool.name.clone();
            return Err(Error::UndescribedTool { tool, reason });
        }
        Ok(render_declarations(&self.set.tools, format))
    }

    /// Returns what [`answer`](Self::answer) would run, in which batches, and what it would reject. Runs nothing.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] if `message` isn't in any known dialect.
    pub fn plan(&self, message: impl AsRef<[u8]>) -> Result<Plan, Error> {
        let recording = read_message(message.as_ref().to_vec(), self.max_message_bytes)?;
        let mut plan = Plan::default();
        for index in 0..recording.len() {
            let calls = self.set.checker.check_turn(recording.turn(index, false)?);
            plan.push_turn(&calls, &self.set.tools, self.set.jobs, &self.set.mask);
        }
        Ok(plan)
    }

    /// Runs the calls of `message`: the JSON of a response, message, request or recording, in any dialect that
    /// `toolq run` reads. Await the returned request to run it.
    ///
    /// A call that fails isn't an error: its result tells the model. The reply has exactly one result per call, in order.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] if `message` isn't in any known dialect. Then nothing ran.
    pub fn answer(&self, message: impl AsRef<[u8]>) -> AnswerRequest<'_> {
        AnswerRequest::new(&self.session, message.as_ref().to_vec())
    }

    /// Runs the calls of a streamed response (server-sent events of the Messages, Chat Completions or Responses API)
    /// while it arrives. Await the returned request to run it.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] if the input isn't a stream of events, or breaks off before the first call begins. If it
    /// breaks off later, calls that haven't started get a result that says so.
    pub fn answer_stream<R>(&self, reader: R) -> StreamAnswerRequest<'_, R>
    where
        R: AsyncRead + Send + Unpin,
    {
        StreamAnswerRequest::new(&self.session, reader)
    }

    /// Stops the processes that this `Toolq` keeps ready, and ends its session log.
    ///
    /// Dropping it does the same, but can't report an error.
    ///
    /// # Errors
    /// [`Error::Log`] if a record could not be written to the log.
    pub fn close(self) -> Result<(), Error> {
        self.session.into_inner().close()
    }
}

/// Serves as a process supervisor if this process was started as one. Call it first thing in `main`.
///
/// toolq starts commands through a copy of the running program that acts as a child subreaper, so that no process of a
/// tool outlives its call or this program. A program that doesn't call this function gets no supervisor: then, when a call
/// ends, only the process group of its command is killed; commands survive if this program is killed; and tools with
/// `limits` can't run.
///
/// Returns the exit code to end with, or `None` if the program was started normally. Has no effect on systems other
/// than Linux.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     if let Some(exit_code) = toolq_embed::supervise() {
///         return exit_code;
///     }
///     // The program itself.
///     std::process::ExitCode::SUCCESS
/// }
/// ```
#[must_use = "a supervisor must end with this exit code"]
pub fn supervise() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let exit_code = procfence::supervise(&arguments);
    CAN_SUPERVISE.store(true, Ordering::Relaxed);
    exit_code
}

impl fmt::Debug for Toolq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.set.tools.tools.iter().map(|tool| &tool.name);
        f.debug_struct("Toolq")
            .field("tools", &tools.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Whether commands can be started through a copy of this program.
pub(crate) fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Relaxed)
}
