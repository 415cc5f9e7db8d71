//! Turns the records of session logs into text, tables, and JSON. Records come in one by one, in file order, and little of
//! each is kept, regardless of its size. Nothing here opens files.

mod call_tree;
mod call_view;
mod cost;
mod doubts;
mod log_renderer;
mod session_list;
pub(crate) mod table;
pub(crate) mod timeline;
mod whole_call;

pub use call_tree::CallFilter;
pub(crate) use call_tree::ToolNameFilter;
pub(crate) use call_view::{WAITS_FOR_APPROVAL, approval_label, end_label, end_summary};
pub(crate) use cost::CostCollector;
pub(crate) use doubts::{DoubtCollector, DoubtNotice, KILLED, doubt_notices, settlement_lines};
pub use log_renderer::LogRenderer;
pub(crate) use session_list::{
    SessionRow, SessionState, exit_label, sessions_json, sessions_table,
};
pub use table::TextLayout;
pub(crate) use whole_call::WholeCallRenderer;
