//! Turns the records of session logs into text, tables, and JSON. Records come in one by one, in file order, and little of
//! each is kept, regardless of its size. Nothing here opens files.

mod call_end_view;
mod call_filter;
mod call_tree;
mod call_view;
mod cost;
mod cost_table;
mod doubts;
mod durations;
mod log_renderer;
mod preview;
mod session_list;
mod session_view;
mod stats;
mod stats_table;
pub(crate) mod table;
mod text_layout;
mod tool_name_filter;
mod whole_call;

pub(crate) use call_end_view::{end_label, end_summary};
pub use call_filter::CallFilter;
pub(crate) use cost::CostCollector;
pub(crate) use doubts::{DoubtCollector, doubt_notices};
pub(crate) use durations::DurationSample;
pub use log_renderer::LogRenderer;
pub(crate) use session_list::{SessionRow, SessionState, sessions_json, sessions_table};
pub(crate) use stats::StatsCollector;
pub use text_layout::TextLayout;
pub(crate) use tool_name_filter::ToolNameFilter;
pub(crate) use whole_call::WholeCallRenderer;
