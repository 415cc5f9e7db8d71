//! Answer a language model's tool calls: `tool_use` JSON in, ordered `tool_result` JSON out.
//!
//! A `tools.yaml` declares the tools. For each tool it has an input schema, limits, and a command, HTTP endpoint or agent
//! that does the work, and says whether calls may run in parallel. [`Toolq`] checks each call of a message, runs the calls
//! in order (in parallel where that is safe) with timeouts and retries, and returns exactly one result per call, in the
//! dialect of the message.
//!
//! ```no_run
//! # async fn answer(message: &str) -> Result<(), toolq_embed::Error> {
//! use toolq_embed::{Event, Toolq};
//!
//! let toolq = Toolq::builder()
//!     .tools_file("tools.yaml")
//!     .log("session.jsonl")
//!     .build()?;
//!
//! println!("{}", toolq.plan(message)?); // what would run
//! let reply = toolq
//!     .answer(message)
//!     .events(|event| {
//!         if let Event::Started { call, .. } = event {
//!             eprintln!("{} …", call.tool_name);
//!         }
//!     })
//!     .await?;
//! println!("{reply}"); // append this to the conversation
//! # Ok(())
//! # }
//! ```
//!
//! `examples/embed.rs` is a complete program. In `examples/functions.rs`, tools are functions of the program, and another function
//! approves calls. [`Toolq::answer_stream`] answers a response while it is still streaming.
//! In your Cargo.toml, `toolq-embed = { path = "../toolq/crates/toolq-embed" }` names the library in a copy of the repository.
//! Programs that run commands on Linux should begin with [`supervise`], so that no process of a tool outlives its call.

mod builder;
mod callbacks;
mod error;
mod reply;
mod session;
mod toolq;

pub use builder::{ToolCall, ToolOutput, ToolqBuilder};
pub use callbacks::{ApprovalAnswer, ApprovalQuestion, Event, EventCall};
pub use error::{Error, ToolsFileProblem};
pub use reply::{CallResult, Reply};
pub use toolq::{AnswerRequest, Plan, PlannedTurn, RejectedCall, Toolq, supervise};
pub use toolq_core::answer::DeclarationFormat;
pub use toolq_core::tools_file::HostToolProblem;
pub use toolq_core::types::Status;
