//! The settings of an engine, and the interfaces through which it delivers results, asks for approvals, has calls served and finds hosts.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::run_budget::BudgetLimits;
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::types::{
    Approval, ApprovalRequest, CallAnswer, CallMemory, CallRef, Effect, EventSink, ToolsConfig,
    TraceContext,
};

/// The running program, even if its file was replaced in the meantime.
pub const SUPERVISOR_PROGRAM: &str = "/proc/self/exe";

/// The settings of an engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The tools that can be called.
    pub tools: Arc<ToolsConfig>,
    /// The maximum number of calls running at once. Agents don't count.
    pub jobs: NonZeroUsize,
    /// The directory for the full text of truncated outputs, created when the first one is saved. `None` saves nothing.
    pub output_dir: Option<PathBuf>,
    /// The session log with its directory, and the memory of all runs: only calls of `read` tools can be given their paths.
    pub log_files: Vec<PathBuf>,
    /// This program, started again as the supervisor of the commands ([`procfence::supervise`]), so that no process
    /// outlives its call. Without it the engine starts commands itself, and a process that leaves its process group
    /// outlives the call.
    pub supervisor_program: Option<PathBuf>,
    /// A file that stays open as long as any process of a call is left, even if this process is gone: the session log, so that its
    /// lock says whether a call may still have its effect.
    pub held_file: Option<Arc<OwnedFd>>,
    /// The environment that children inherit from, and from which `${NAME}` is read, with the variables of `env_file`.
    pub environment: Arc<Environment>,
    /// Resolves the hosts of HTTP requests.
    pub resolver: Resolver,
    /// Masks secrets in everything that leaves the engine.
    pub mask: Arc<Mask>,
    /// Identifies the task in idempotency keys: unique to the task.
    pub task_id: String,
    /// The trace that the calls belong to. It is passed on to what they run.
    pub trace: Option<Arc<TraceContext>>,
    /// Who says whether calls that need an approval may start. Without one, they don't.
    pub approver: Option<Approver>,
    /// What serves the tools with `backing: host`. Without it, their calls fail as those of tools without a backing do.
    pub host_tools: Option<Arc<dyn HostTools>>,
    /// Limits over all turns together.
    pub budget_limits: BudgetLimits,
    /// What decides whether a call has run before. Without one, every call is new, and nothing waits for a disk.
    pub memory: Option<Arc<dyn CallMemory>>,
}

impl EngineSettings {
    /// The defaults: the concurrency of the tools file, no log, no memory, no budgets, no supervisor.
    pub fn new(tools: Arc<ToolsConfig>, environment: &Environment, mask: Arc<Mask>) -> Self {
        Self {
            jobs: tools.concurrency,
            output_dir: None,
            log_files: Vec::new(),
            supervisor_program: None,
            held_file: None,
            environment: Arc::new(environment.with_env_file(&tools.env_file)),
            tools,
            resolver: Resolver::system(),
            mask,
            task_id: random_task_id(),
            trace: None,
            approver: None,
            host_tools: None,
            budget_limits: BudgetLimits::default(),
            memory: None,
        }
    }

    /// Returns these settings with other tools.
    pub(crate) fn with_tools(&self, tools: Arc<ToolsConfig>) -> Arc<Self> {
        Arc::new(Self {
            tools,
            ..self.clone()
        })
    }
}

/// Returns an id for a task that has no log. It comes from the system, since idempotency keys
/// are derived from it: two tasks must never share one.
pub fn random_task_id() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // A system without random numbers hardly starts programs. If it does, the time still tells tasks apart.
        bytes = fastrand::u128(..).to_ne_bytes();
    }
    format!("{:032x}", u128::from_ne_bytes(bytes))
}

/// Receives the answers to calls.
pub trait AnswerDelivery: Send {
    /// Delivers the next answer in call order, as soon as it and all before it are available. Events that follow from
    /// this, such as `ResultWritten`, go to `sink`.
    fn deliver(&mut self, call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink);

    /// Called once every call of the turn has been delivered. Events emitted here precede the turn's last event.
    fn finish_turn(&mut self, _sink: &mut dyn EventSink) {}
}

impl<F> AnswerDelivery for F
where
    F: FnMut(&Arc<CallRef>, CallAnswer, &mut dyn EventSink) + Send,
{
    fn deliver(&mut self, call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink) {
        self(call, answer, sink);
    }
}

// Who decides about calls, what serves those of the host, and what finds the hosts of requests.

/// Who says whether a call that needs an approval may start.
#[derive(Debug, Clone)]
pub enum Approver {
    /// This user approved all calls in advance.
    All {
        /// The name of the user, if it is known.
        user: Option<String>,
    },
    /// This program decides. It reads the call as JSON on stdin; exit code 0 is a yes, and 1 is a no with the reason on
    /// stdout. Anything else stops the run.
    Program(PathBuf),
    /// A person decides.
    Person(Arc<dyn ApprovalPrompt>),
    /// Some calls were approved before the run. Another approver decides about the others.
    Planned {
        /// The calls that were approved.
        approvals: Arc<dyn PriorApprovals>,
        /// Who decides about the others, if there is another approver.
        otherwise: Option<Box<Approver>>,
    },
}

/// Calls that were approved before the run began.
pub trait PriorApprovals: fmt::Debug + Send + Sync {
    /// Returns the approval of exactly this call, if it has one.
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval>;
}

/// Asks a person.
pub trait ApprovalPrompt: fmt::Debug + Send + Sync {
    /// Asks about one call. Dropping the future withdraws the question.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a>;
}

/// The reply to come.
pub type ApprovalFuture<'a> = Pin<Box<dyn Future<Output = ApprovalReply> + Send + 'a>>;

/// The result of a question about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalReply {
    /// The call was approved or denied.
    Decided(Approval),
    /// No approver can decide about this call, so it doesn't run.
    Unavailable,
    /// The run stops, for this reason: the question couldn't be asked, or the approver stopped the run.
    Stopped(String),
}

impl ApprovalReply {
    /// The reply to a question whose answer is no longer needed.
    pub(crate) fn withdrawn() -> Self {
        Self::Stopped("the question was withdrawn".to_owned())
    }
}

/// What serves the tools with `backing: host`.
pub trait HostTools: fmt::Debug + Send + Sync {
    /// Runs one call. Dropping the future means that the result is no longer needed: the call has timed out, or was
    /// canceled.
    fn run<'a>(&'a self, call: &'a HostCall) -> HostFuture<'a>;
}

/// The reply to come.
pub type HostFuture<'a> = Pin<Box<dyn Future<Output = HostReply> + Send + 'a>>;

/// A call of a host tool.
#[derive(Debug, Clone)]
pub struct HostCall {
    /// Which call it is.
    pub call: CallRef,
    /// What the tool does to the world.
    pub effect: Effect,
    /// The input, after defaults and coercion. It isn't masked.
    pub input: Input,
    /// Counted from 1.
    pub attempt: u32,
    /// The same for all attempts of the call, in every run.
    pub idempotency_key: Arc<str>,
    /// How long the attempt may take.
    pub timeout: Duration,
}

/// How the host replied to a call.
#[derive(Debug)]
pub enum HostReply {
    /// It ran.
    Done {
        /// A text or a list of content blocks; with `output: json`, any JSON. `None` is an empty text.
        content: Option<Box<RawValue>>,
        /// Whether the model receives it as an error.
        is_error: bool,
    },
    /// There will be no result.
    Lost {
        /// Whether the host may have seen the call.
        was_sent: bool,
        /// Why, without a period.
        why: String,
    },
}

/// A pending lookup.
pub(crate) type AddressFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names to addresses. Tests provide their own.
#[derive(Clone, derive_more::Debug)]
#[debug("Resolver")]
pub struct Resolver(Arc<dyn Fn(String) -> AddressFuture + Send + Sync>);

impl Resolver {
    /// Creates the resolver of the system, which uses its hosts file and name servers.
    pub fn system() -> Self {
        Self::new(|name| async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }

    /// Creates a resolver from a function.
    pub fn new<F>(resolve: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Self(Arc::new(move |name| Box::pin(resolve(name))))
    }

    /// Looks up a name.
    pub(crate) fn look_up(&self, name: String) -> AddressFuture {
        (self.0)(name)
    }
}

#[cfg(test)]
mod tests {
    use super::random_task_id;

    /// Two processes that begin with the same random numbers of their own have different tasks all the same.
    #[test]
    fn ids_of_tasks_come_from_the_system() {
        let id_after_seed = || {
            fastrand::seed(7);
            random_task_id()
        };
        let id = id_after_seed();
        assert_eq!(id.len(), 32);
        assert_ne!(id, id_after_seed());
    }
}
