//! Text for people: escaping, truncation, units, suggestions.

mod ansi;
mod columns;
mod escape;
mod names;
mod suggest;
mod units;

pub use ansi::paint;
pub use columns::cut;
pub use escape::escape;
pub(crate) use names::MAX_NAME;
pub use names::clipped;
pub use suggest::nearest;
pub use units::{format_bytes, format_duration, parse_age, parse_bytes, parse_duration};
