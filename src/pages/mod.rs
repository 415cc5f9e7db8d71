//! Pages: self-contained HTML files that need no network. Everything that a model or a tool wrote is plain text in them.

mod frame;
mod plan;
mod replay;
mod time_axis;
mod timeline;

pub(crate) use plan::PlanPage;
pub(crate) use replay::{ReplayRow, ReplayState, SideRow, replay_page, side_rows};
pub(crate) use time_axis::input_beginning;
pub(crate) use timeline::timeline_page;
