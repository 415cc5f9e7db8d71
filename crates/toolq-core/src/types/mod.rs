//! The shared vocabulary: turns, calls, tools, outcomes, and events.
//!
//! Every stage uses these types. They hold facts, never text written for a person or a model, and depend on no other
//! stage.

mod agent;
mod agent_history;
mod answer;
mod backing;
mod call;
mod compare;
mod dialect;
mod event;
mod event_sink;
mod halt;
mod invocation;
mod masked;
mod outcome;
mod price;
mod problem;
mod recorded_result;
mod resume_state;
mod status;
mod template;
mod tool;
mod transport;
mod usage;
mod verdict;

pub(crate) use agent::BuiltinTool;
pub use agent::{
    AgentBacking, AgentBudget, AgentFailure, AgentUsage, Api, ModelResponse, StopReason,
};
pub use agent_history::{AgentHistory, LoggedResponse};
pub use answer::{CallAnswer, CallReport, CaptureStats, ResultContent};
pub(crate) use backing::{ArgumentTemplate, StatusRange};
pub use backing::{
    Backing, BodyTemplate, CommandBacking, CommandLimits, HostPattern, HttpBacking, HttpMethod,
    Leftovers, LimitKind, RequestBody, StdinSource,
};
pub use call::{Call, CallKey, CallRef, ResponseEnding, Turn};
pub use compare::{Compare, IgnorePattern, TextNormalizer};
pub use dialect::{AnswerForm, Dialect, InputLayout};
pub use event::{Event, ProbeFinding};
pub use event_sink::{EmitError, EventSink};
pub use halt::{BudgetLimit, HaltCause, NotExecutedCause};
pub use invocation::{
    AgentInvocation, CommandInvocation, HttpInvocation, Invocation, PartialJson, PartialTemplate,
    Segment, StdinContent,
};
pub use masked::{MaskedContent, MaskedJson, MaskedText};
pub use outcome::{CallEnding, DoubtCause, Outcome};
pub(crate) use price::MicroUsd;
pub use price::{ModelPrice, PicoUsd, PriceTable, format_dollars, format_usd};
pub use problem::{FileProblem, Severity, Span};
pub use recorded_result::RecordedResult;
pub use resume_state::{PriorAttempts, RestoredResult, ResumeState};
pub use status::Status;
pub use template::{Template, TemplatePart};
pub use tool::{
    CallTimeouts, DescribeCommand, DescribeResult, Effect, FormatPolicy, OnDoubt, OnFailure,
    OutputKind, RetryCondition, RetryPolicy, RuleSetting, SafetyPolicy, SafetyRule,
    StatusTemplates, Tool, ToolsConfig,
};
pub(crate) use tool::{MessageKey, MessageTemplates, ToolDescription};
pub use transport::{SpawnError, TransportCause, TransportError, TransportPhase};
pub use usage::{ReportedUsage, Usage};
pub use verdict::{
    AcceptedCall, CheckedCall, ProblemDetail, Rejection, RejectionReason, SafetySource,
    TurnArrival, Verdict,
};
