//! Pages: self-contained HTML files that need no network. Whatever a model or a tool wrote is text in them.

mod filter_form;
mod frame;
mod replay;
mod time_axis;
mod timeline;
mod visible_text;

pub(crate) use replay::{ReplayRow, ReplayState, SideRow, replay_page, side_rows};
pub(crate) use timeline::timeline_page;
