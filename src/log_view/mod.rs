//! Records of a session log → what people and programs are told of them. Records come in one by one, in the order of the
//! file; what is kept of each is small, whatever its size. No file is opened here.

mod call_tree;
mod call_view;
mod cost;
mod cost_table;
mod deferred_calls;
mod describe_tracker;
mod durations;
mod filter;
mod preview;
mod session_view;
mod show;
mod stats;
mod stats_table;
mod table;
mod text_layout;
mod tool_name_filter;
mod writer;

pub(crate) use cost::Cost;
pub use filter::Filter;
pub use show::Show;
pub(crate) use stats::Stats;
pub use text_layout::Page;
pub(crate) use tool_name_filter::Names;
