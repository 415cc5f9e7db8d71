//! Answer a language model's tool calls: `tool_use` JSON in, ordered `tool_result` JSON out.
//!
//! A `tools.yaml` declares the tools. For each tool it has an input schema, limits, and a command, HTTP endpoint or agent
//! that does the work, and says whether calls may run in parallel. [`Toolq`] checks each call of a message, runs the calls
//! in order (in parallel where that is safe) with timeouts and retries, and returns exactly one result per call, in the
//! dialect of the message.
//!
//! ```no_run
//! # async fn answer(message: &str) -> Result<(), toolq::Error> {
//! use toolq::{Event, Toolq};
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
//! Programs that run commands on Linux should begin with [`supervise`], so that no process of a tool outlives its call.
//!
//! The feature `cli`, which is on by default, adds the command-line program. Programs that use only the library turn it
//! off: `toolq = { path = "../toolq", default-features = false }`.

mod call_setup;
mod embed;

pub use embed::{
    AnswerRequest, ApprovalAnswer, ApprovalQuestion, CallResult, Error, Event, EventCall, Plan,
    PlannedBatch, PlannedTurn, RejectedCall, Reply, StreamAnswerRequest, ToolCall, ToolOutput,
    Toolq, ToolqBuilder, ToolsFileProblem, supervise,
};
pub use toolq_core::answer::DeclarationFormat;
pub use toolq_core::tools_file::HostToolProblem;
pub use toolq_core::types::Status;

#[cfg(feature = "cli")]
mod approval;
#[cfg(feature = "cli")]
mod args;
#[cfg(feature = "cli")]
mod commands;
#[cfg(feature = "cli")]
mod context;
#[cfg(feature = "cli")]
mod environment;
#[cfg(feature = "cli")]
mod events;
#[cfg(feature = "cli")]
mod input;
/// What `toolq log` shows. Not part of the library; its tests need it.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod log_view;
#[cfg(feature = "cli")]
mod man_page;
#[cfg(feature = "cli")]
mod otlp;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "cli")]
mod pages;
#[cfg(feature = "cli")]
mod plan_file;
/// The command-line program. Not part of the library.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod program;
#[cfg(feature = "cli")]
mod replay;
#[cfg(feature = "cli")]
mod session;
#[cfg(feature = "cli")]
mod settings;
#[cfg(feature = "cli")]
mod terminal;
#[cfg(feature = "cli")]
mod timeline;
