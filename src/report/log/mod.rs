//! Records of a session log → what people and programs are told of them. Records come in one by one, in the order of the
//! file; what is kept of each is small, whatever its size. No file is opened here.

mod asked;
mod call_view;
mod columns;
mod cost;
mod cost_table;
mod durations;
mod filter;
mod late;
mod names;
mod page;
mod preview;
mod session_view;
mod show;
mod stats;
mod stats_table;
mod tree;
mod writer;

pub use cost::{AgentCost, Cost};
pub use durations::Durations;
pub use filter::Filter;
pub use names::Names;
pub use page::Page;
pub use show::Show;
pub use stats::{Stats, ToolStats};
