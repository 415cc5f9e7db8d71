//! The shared vocabulary: turns, calls, tools, outcomes, and events.
//!
//! Every stage uses these types. They hold facts, never text written for a person or a model, and depend on no other
//! stage.

mod agent;
mod answer;
mod approval;
mod argument_list;
mod backing;
mod cache_policy;
mod call;
mod call_context;
mod call_ending;
mod call_output;
mod compare;
mod dialect;
mod env_file;
mod event;
mod event_sink;
mod failure_policy;
mod halt;
mod http_backing;
mod invocation;
mod locks;
mod masked;
mod memory;
mod once_policy;
mod outcome;
mod outcome_kind;
mod output_request;
mod price;
mod probe_finding;
mod problem;
mod reach;
mod recorded_result;
mod safety;
mod sandbox;
mod server;
mod server_event;
mod start_limits;
mod status;
mod template;
mod tool;
mod tool_lock;
mod tools_change;
mod tools_config;
mod trace_context;
mod traceparent;
mod transport;
mod unlocked_server;
mod usage;
mod verdict;
mod wrapper;

pub use agent::{
    AgentBacking, AgentBudget, AgentFailure, AgentUsage, Api, BuiltinTool, ModelResponse,
    StopReason,
};
pub use answer::{CallAnswer, CallReport, ClientContent, ResultContent};
pub use approval::{Approval, ApprovalDecision, ApprovalMeans, ApprovalPolicy, ApprovalRequest};
pub use argument_list::ArgumentList;
pub use backing::{
    Backing, CommandBacking, CommandLimits, Leftovers, LimitKind, StderrUse, StdinSource,
};
pub use cache_policy::CachePolicy;
pub use call::{Call, CallKey, CallKind, CallRef, InputState, ResponseEnding, Turn, TurnOrigin};
pub(crate) use call_context::GENERATED_ID_PREFIX;
pub use call_context::{CallContext, ContextDigest, is_generated_id, is_random_id};
pub use call_ending::{CallEnding, DoubtCause, UnsettledStart};
pub use call_output::{CacheHit, CallOutput, CaptureStats};
pub use compare::{Compare, IgnorePattern, TextNormalizer};
pub use dialect::{AnswerForm, Dialect, InputLayout, StreamVendor};
pub use env_file::EnvFile;
pub use event::Event;
pub use event_sink::{EmitError, EventSink};
pub use failure_policy::{CallTimeouts, OnDoubt, OnFailure, RetryCondition, RetryPolicy};
pub use halt::{BudgetLimit, HaltCause, NotExecutedCause};
pub(crate) use http_backing::StatusRange;
pub use http_backing::{
    BodyTemplate, FORM_MEDIA_TYPE, HostPattern, HttpBacking, HttpMethod, RequestBody,
};
pub use invocation::{
    AgentInvocation, CommandInvocation, HttpInvocation, Invocation, McpInvocation, PartialJson,
    PartialTemplate, Segment, StdinContent,
};
pub(crate) use locks::FILE_LOCK_PREFIX;
pub use locks::{CallLock, CallLocks, LockMode, LockTemplates, LockedResource};
pub use masked::{MaskedContent, MaskedJson, MaskedText};
pub use memory::{
    CallClaim, CallConflict, CallHistory, CallMemory, Commit, CommitDone, EarlierRun,
    MemoryVerdict, RecalledCall, Recollection, RestoredResult, ResultSource, RunsAgain,
};
pub use once_policy::OncePolicy;
pub use outcome::Outcome;
pub use outcome_kind::OutcomeKind;
pub use output_request::{CutOutput, DEFAULT_PAGE_BYTES, OutputRequest, OutputUnavailable};
pub(crate) use price::MicroUsd;
pub use price::{ModelPrice, PicoUsd, PriceTable, format_dollars, format_usd};
pub use probe_finding::ProbeFinding;
pub use problem::{FileProblem, Severity, Span};
pub use reach::Reach;
pub use recorded_result::RecordedResult;
pub use safety::{Effect, RuleSetting, SafetyPolicy, SafetyRule, safety_text};
pub use sandbox::{
    MissingProtection, Sandbox, SandboxEntry, SandboxInvocation, SandboxNetwork, SandboxPlace,
};
pub use server::{
    HintPolicy, McpBacking, ResultParts, ServerConfig, ServerEndpoint, ServerProtocol,
    ServerTransport,
};
pub use server_event::{ServerEnd, ServerEndCause, ServerIntroduction, ServerStart};
pub use start_limits::{HostLimits, RatePeriod, StartLimits, StartRate};
pub use status::Status;
pub use template::{Template, TemplatePart};
pub use tool::{DescribeCommand, DescribeResult, FormatPolicy, OutputKind, StatusTemplates, Tool};
pub(crate) use tool::{MessageKey, MessageTemplates, ToolDescription};
pub use tool_lock::{DefinitionPart, ServerLock, ToolDefinition, ToolDrift, ToolLock};
pub use tools_change::ToolsChange;
pub use tools_config::{ToolsConfig, mask_variables};
pub use trace_context::{CallPath, CallTrace, TraceContext};
pub use traceparent::Traceparent;
pub use transport::{SpawnError, TransportCause, TransportError, TransportPhase};
pub use unlocked_server::{ServerListing, ToolResolver, UnlockedServer};
pub use usage::{ReportedUsage, Usage};
pub use verdict::{
    AcceptedCall, CallRequest, CheckedCall, ProblemDetail, Rejection, RejectionReason,
    SafetySource, TurnArrival, Verdict,
};
pub use wrapper::CommandWrapper;
