//! The library: answers messages with the tools of a tools.yaml, without the command line.

mod answer;
mod approval;
mod builder;
mod callback_sink;
mod collector;
mod error;
mod event;
mod function_tools;
mod message;
mod plan;
mod reply;
mod runtime_engine;
mod session;
mod stream;
mod stream_reader;
mod toolq;
mod tools_loading;

pub use answer::AnswerRequest;
pub use approval::{ApprovalAnswer, ApprovalQuestion};
pub use builder::ToolqBuilder;
pub use error::{Error, ToolsFileProblem};
pub use event::{Event, EventCall};
pub use function_tools::{ToolCall, ToolOutput};
pub use plan::{Plan, PlannedBatch, PlannedTurn, RejectedCall};
pub use reply::{CallResult, Reply};
pub use stream::StreamAnswerRequest;
pub use toolq::{Toolq, supervise};
