//! The tools of one tools.yaml, ready to answer.

use std::ffi::OsString;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncRead;
use tokio::sync::Mutex;

use crate::callbacks::{Event, EventCallback};
use crate::error::Error;
use crate::reply::{Reply, read_message};
use crate::session::{EmbeddedSession, StreamReader, ToolSet};
use redact::Mask;
use toolq_core::answer::{DeclarationFormat, render_declarations};
use toolq_core::plan::{PlanDetail, PlanStyle, TurnPlan, render_plan_json, render_plan_text};
use toolq_core::types::{CheckedCall, DescribeResult, Status, ToolsConfig};

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
    pub(crate) warnings: Vec<String>,
    pub(crate) session: Mutex<EmbeddedSession>,
}

impl Toolq {
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
        let recording = read_message(message.as_ref().to_vec())?;
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
        AnswerRequest::new(
            &self.session,
            AnswerSource::Message(message.as_ref().to_vec()),
        )
    }

    /// Runs the calls of a streamed response (server-sent events of the Messages, Chat Completions or Responses API)
    /// while it arrives. Await the returned request to run it.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] if the input isn't a stream of events, or breaks off before the first call begins. If it
    /// breaks off later, calls that haven't started get a result that says so.
    pub fn answer_stream<'a>(
        &'a self,
        reader: impl AsyncRead + Send + Unpin + 'a,
    ) -> AnswerRequest<'a> {
        AnswerRequest::new(&self.session, AnswerSource::Stream(Box::new(reader)))
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

// Answers a message, or a stream of server-sent events, whose calls start while the model is still writing.

/// A message or a stream that is about to be answered. Await it.
///
/// Dropping the future kills what it runs, and loses the results of calls that had finished. They are in the session
/// log, but answering the same message again runs its calls again. Don't await a second request on the same
/// [`Toolq`](crate::Toolq) from within the callback or while this one is suspended: it waits until this one is finished
/// or dropped.
#[must_use = "nothing runs until it is awaited"]
pub struct AnswerRequest<'a> {
    session: &'a Mutex<EmbeddedSession>,
    source: AnswerSource<'a>,
    callback: Option<EventCallback<'a>>,
}

enum AnswerSource<'a> {
    Message(Vec<u8>),
    Stream(Box<dyn AsyncRead + Send + Unpin + 'a>),
}

impl<'a> AnswerRequest<'a> {
    fn new(session: &'a Mutex<EmbeddedSession>, source: AnswerSource<'a>) -> Self {
        Self {
            session,
            source,
            callback: None,
        }
    }

    /// Calls `callback` for each event, in order. The run doesn't continue until it returns, so it should be quick.
    pub fn events(mut self, callback: impl FnMut(&Event) + Send + 'a) -> Self {
        self.callback = Some(Box::new(callback));
        self
    }
}

impl<'a> IntoFuture for AnswerRequest<'a> {
    type Output = Result<Reply, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut session = self.session.lock().await;
            match self.source {
                AnswerSource::Message(message) => session.answer(message, self.callback).await,
                AnswerSource::Stream(reader) => {
                    let mut source = StreamReader::new(reader);
                    session.answer_stream(&mut source, self.callback).await
                }
            }
        })
    }
}

// What would run, without running it.

/// Columns of the text form.
const TEXT_WIDTH: usize = 100;

/// What would happen to the calls of a message.
///
/// Its [`Display`](std::fmt::Display) form is the text that `toolq plan` prints.
#[derive(Debug, Clone, Default, PartialEq, Eq, derive_more::Display)]
#[display("{}", text.trim_end())]
#[non_exhaustive]
pub struct Plan {
    /// One for each message of the input.
    pub turns: Vec<PlannedTurn>,
    text: String,
    json: String,
}

/// The plan of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedTurn {
    /// In the order in which they would run: the ids of the calls that would run at the same time, in call order.
    pub batches: Vec<Vec<String>>,
    /// The calls that would not run, in call order.
    pub rejected: Vec<RejectedCall>,
}

/// A call that would not run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedCall {
    /// The id of the call.
    pub tool_use_id: String,
    /// The reason, as in the JSON plan: `unknown_tool`, `invalid_input` …
    pub reason: Status,
}

impl Plan {
    /// The plan as `toolq plan --format json` prints it: one object per message, each on its own line.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Appends the plan of the next message.
    fn push_turn(
        &mut self,
        calls: &[CheckedCall],
        tools: &ToolsConfig,
        concurrency: NonZeroUsize,
        mask: &Mask,
    ) {
        let plan = TurnPlan::new(self.turns.len(), calls, tools, concurrency);
        if !self.turns.is_empty() {
            self.text.push('\n');
        }
        let style = PlanStyle {
            width: TEXT_WIDTH,
            color: false,
            is_unicode: true,
            detail: PlanDetail::Whole,
        };
        self.text.push_str(&render_plan_text(&plan, style, mask));
        self.json.push_str(render_plan_json(&plan, mask).trim_end());
        self.json.push('\n');
        self.turns.push(PlannedTurn::new(&plan));
    }
}

impl PlannedTurn {
    fn new(plan: &TurnPlan<'_>) -> Self {
        let batches = plan.batches.iter().map(|batch| {
            let calls = batch.calls.iter();
            calls.map(|planned| planned.call.id.clone()).collect()
        });
        let rejected = plan.rejected.iter().map(|rejected| RejectedCall {
            tool_use_id: rejected.call.id.clone(),
            reason: rejected.reason(),
        });
        Self {
            batches: batches.collect(),
            rejected: rejected.collect(),
        }
    }
}
