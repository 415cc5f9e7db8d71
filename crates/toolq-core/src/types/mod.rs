//! The shared vocabulary: turns, calls, tools, outcomes, and events. Every stage uses these types. They hold facts, never
//! text written for a person or a model, and depend on no other stage.

mod agent;
mod answer;
mod backing;
mod call;
mod config;
mod dialect;
mod ending;
mod event;
mod memory;
mod outcome;
mod policies;
mod server;
mod status;
mod template;
mod tool;
mod usage;
mod verdict;

pub use crate::json_schema::{FormatPolicy, ProblemDetail};
pub use crate::os::EnvFile;
pub use agent::{AgentBacking, AgentBudget, AgentFailure, AgentUsage, ModelResponse, StopReason};
pub use answer::{
    CallAnswer, CallReport, ClientContent, CutOutput, DEFAULT_PAGE_BYTES, MaskedContent,
    MaskedJson, MaskedText, OutputRequest, OutputUnavailable, RecordedResult, ResultContent,
};
pub(crate) use backing::StatusRange;
pub use backing::{
    AgentInvocation, BodyTemplate, CommandBacking, CommandInvocation, CommandLimits,
    CommandWrapper, FORM_MEDIA_TYPE, HostPattern, HttpBacking, HttpInvocation, HttpMethod,
    Invocation, Leftovers, LimitKind, McpInvocation, MissingProtection, RequestBody, Sandbox,
    SandboxEntry, SandboxInvocation, SandboxNetwork, SandboxPlace, StderrUse, StdinContent,
    StdinSource,
};
pub(crate) use call::GENERATED_ID_PREFIX;
pub use call::{
    Call, CallContext, CallKey, CallKind, CallPath, CallRef, CallTrace, ContextDigest, InputState,
    ResponseEnding, TraceContext, Traceparent, Turn, TurnOrigin, is_generated_id, is_random_id,
};
pub use config::{
    FileProblem, ServerListing, Severity, Span, ToolResolver, ToolsChange, ToolsConfig,
    UnlockedServer, mask_variables,
};
pub use dialect::{AnswerForm, Api, Dialect, InputLayout, StreamVendor};
pub use ending::{
    BudgetLimit, CacheHit, CallEnding, CallOutput, CaptureStats, DoubtCause, HaltCause,
    NotExecutedCause, ServerEnd, ServerEndCause, ServerIntroduction, ServerStart, SpawnError,
    TransportCause, TransportError, TransportPhase, UnsettledStart,
};
pub use event::{Event, EventSink};
pub use memory::{
    CallClaim, CallHistory, CallMemory, CommitDone, EarlierRun, EmitError, MemoryVerdict,
    RecalledCall, Recollection, RunsAgain,
};
pub use outcome::{
    CallConflict, Outcome, Rejection, RejectionReason, RestoredResult, ResultSource,
};
pub(crate) use policies::FILE_LOCK_PREFIX;
pub use policies::{
    ApprovalPolicy, CachePolicy, CallLock, CallLocks, Effect, LockMode, LockTemplates,
    LockedResource, OncePolicy, RatePeriod, RuleSetting, SafetyPolicy, SafetyRule, StartLimits,
    StartRate, safety_text,
};
pub use server::{
    DefinitionPart, HintPolicy, McpBacking, ResultParts, ServerConfig, ServerEndpoint, ServerLock,
    ServerProtocol, ServerTransport, ToolDefinition, ToolDrift, ToolLock,
};
pub use status::{OutcomeKind, ProbeFinding, Reach, Status};
pub use template::{ArgumentList, PartialJson, PartialTemplate, Segment, Template, TemplatePart};
pub use tool::{
    Backing, BuiltinTool, CallTimeouts, Compare, DescribeCommand, DescribeResult, IgnorePattern,
    OnDoubt, OnFailure, OutputKind, RetryCondition, RetryPolicy, StatusTemplates, TextNormalizer,
    Tool,
};
pub(crate) use tool::{
    DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SAVED, MessageKey, MessageTemplates, ToolDescription,
};
pub(crate) use usage::MicroUsd;
pub use usage::{
    ModelPrice, PicoUsd, PriceTable, ReportedUsage, Usage, format_dollars, format_usd,
};
pub use verdict::{
    AcceptedCall, Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CallRequest,
    CheckedCall, SafetySource, TurnArrival, Verdict,
};
