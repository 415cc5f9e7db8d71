//! The words of the program: turns, calls, tools, outcomes, events.
//!
//! Every stage speaks in these types. They hold facts, never text made for a person or a model, and this module
//! imports no other stage.

mod agent;
mod answer;
mod backing;
mod call;
mod clock;
mod columns;
mod compare;
mod dialect;
mod environment;
mod escape;
mod event;
mod failpoint;
mod halt;
mod input;
mod invocation;
mod json_line;
pub(crate) mod json;
mod mask;
mod masked;
mod outcome;
mod paint;
mod past;
mod pretty;
mod price;
mod problem;
mod recorded;
#[cfg(test)]
pub(crate) mod sample;
mod template;
mod tool;
mod transport;
mod units;
mod usage;
mod verdict;
mod walk;

pub use agent::{AgentBacking, AgentBudget, AgentFault, AgentUse, Api, Builtin, Response, Stop};
pub use answer::{Answer, Captured, Content};
pub use backing::{
    Argument, Backing, Body, BodyTemplate, CommandBacking, HostPattern, HttpBacking, HttpMethod,
    Leftovers, Limit, Limits, StatusRange, Stdin,
};
pub use call::{Call, Turn};
pub use clock::Clock;
pub use columns::cut;
pub use compare::{Compare, Ignored};
pub use dialect::{Dialect, Form, Layout};
pub use environment::Environment;
pub use escape::escape;
pub use event::{CallKey, CallRef, Event, Finding, Refused, Sink};
pub use failpoint::{arm_failpoints, failpoint, failpoint_within};
pub use halt::{Budget, Halt, NotExecuted};
pub use input::{Input, InputFault, MAX_INPUT_BYTES, MAX_INPUT_DEPTH, MAX_INPUT_NODES};
pub use invocation::{
    AgentInvocation, CommandInvocation, Draft, HttpInvocation, Invocation, JsonDraft, Piece,
    StdinDraft,
};
pub use json_line::json_line;
pub use mask::{Mask, MaskedStream};
pub use masked::{MaskedContent, MaskedJson, MaskedText};
pub use outcome::{Doubt, Ending, Outcome};
pub use paint::paint;
pub use past::{Begun, Memory, Past, Recalled, Told};
pub use pretty::pretty;
pub use price::{MicroUsd, PicoUsd, Price, Prices, dollars, usd};
pub use problem::{Problem, Severity, Span};
pub use recorded::Recorded;
pub use template::{Part, Template};
pub use tool::{
    Describe, Description, Effect, MessageKey, Messages, OnFailure, OutputKind, Retry, RetryOn,
    Rule, Safety, Said, Status, Timeout, Tool, Tools,
};
pub use transport::{SpawnFault, Transport, TransportPhase};
pub use units::{format_bytes, format_duration, parse_age, parse_bytes, parse_duration};
pub use usage::{Tokens, Usage};
pub use verdict::{Accepted, Arrival, Checked, DecidedBy, Detail, Reason, Rejection, Verdict};
pub(crate) use walk::check_json;
