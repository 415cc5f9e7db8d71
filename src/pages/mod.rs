//! Pages: self-contained HTML files that need no network. Whatever a model or a tool wrote is text in them.

mod frame;
mod time_axis;
mod timeline;
mod visible_text;

pub(crate) use timeline::timeline_page;
