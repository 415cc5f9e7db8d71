//! Runs checked calls in order: commands, HTTP requests and agents, with timeouts, retries and budgets.
//!
//! Checked calls come in; events go to an [`EventSink`](toolq_core::types::EventSink), and results go to an
//! [`AnswerDelivery`] in call order. A turn decides in order which calls run; each then has a life of its own, and its attempts
//! are tasks. Nothing here knows about logs, screens or dialects.

mod agent;
mod agent_requests;
mod agent_scope;
mod attempt;
mod backends;
mod command;
mod control;
mod conversation_outputs;
mod discovery;
mod engine;
mod environment;
mod host;
mod http;
mod machine_check;
mod mcp;
mod message_feeder;
mod output;
mod output_reader;
mod reach;
mod recall;
mod result_cache;
mod run_budget;
mod scheduler;
mod settings;
mod state;
#[cfg(test)]
mod tests;
mod timing;
mod turn;

pub use command::{find_interpreter, find_program, find_sandbox_gaps, hides_file};
pub use control::RunControl;
pub use conversation_outputs::ConversationOutputs;
pub use discovery::{SchemaDiscovery, ServerLister};
pub use engine::Engine;
pub use http::http_client_builder;
pub use machine_check::{UntrackableTool, check_machine};
pub use mcp::ServerAnnouncement;
pub use message_feeder::MessageSource;
pub use recall::RememberedWrites;
pub use run_budget::BudgetLimits;
pub use settings::{
    AnswerDelivery, ApprovalFuture, ApprovalPrompt, ApprovalReply, Approver, EngineSettings,
    HostCall, HostFuture, HostReply, HostTools, PriorApprovals, Resolver, SUPERVISOR_PROGRAM,
    random_task_id,
};
pub use timing::DROP_DEADLINE;
pub use turn::TurnRequest;
