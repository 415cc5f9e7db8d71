//! The words of the program: turns, calls, tools, outcomes, events.
//!
//! Every stage speaks in these types. They hold facts, never text made for a person or a model, and this module
//! imports no other stage.

mod agent;
mod agent_history;
mod answer;
mod backing;
mod call;
mod compare;
mod dialect;
mod event;
mod halt;
mod invocation;
mod masked;
mod outcome;
mod price;
mod problem;
mod recorded;
mod resume;
mod sink;
mod template;
mod tool;
mod transport;
mod usage;
mod verdict;

pub(crate) use agent::Builtin;
pub use agent::{AgentBacking, AgentBudget, AgentFault, AgentUse, Api, Response, Stop};
pub use agent_history::{Memory, Told};
pub use answer::{Answer, Captured, Content};
pub(crate) use backing::{Argument, BodyTemplate, StatusRange};
pub use backing::{
    Backing, Body, CommandBacking, HostPattern, HttpBacking, HttpMethod, Leftovers, Limit, Limits,
    Stdin,
};
pub use call::{Call, CallKey, CallRef, Turn};
pub use compare::{Compare, Ignored};
pub use dialect::{Dialect, Form, Layout};
pub use event::{Event, Finding};
pub use halt::{Budget, Halt, NotExecuted};
pub use invocation::{
    AgentInvocation, CommandInvocation, Draft, HttpInvocation, Invocation, JsonDraft, Piece,
    StdinDraft,
};
pub use masked::{MaskedContent, MaskedJson, MaskedText};
pub use outcome::{Doubt, Ending, Outcome};
pub(crate) use price::MicroUsd;
pub use price::{PicoUsd, Price, Prices, dollars, usd};
pub use problem::{Problem, Severity, Span};
pub use recorded::Recorded;
pub use resume::{Begun, Past, Recalled};
pub use sink::{Refused, Sink};
pub use template::{Part, Template};
pub use tool::{
    Describe, Effect, OnFailure, OutputKind, Retry, RetryOn, Rule, Safety, Said, Status, Timeout,
    Tool, Tools,
};
pub(crate) use tool::{Description, MessageKey, Messages};
pub use transport::{SpawnFault, Transport, TransportPhase};
pub use usage::{Tokens, Usage};
pub use verdict::{Accepted, Arrival, Checked, DecidedBy, Detail, Reason, Rejection, Verdict};
