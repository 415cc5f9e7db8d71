//! Text for people: escaping, truncation, units, suggestions.

mod ansi;
mod columns;
mod content_text;
mod decode;
mod escape;
mod line_starts;
mod shell_words;
mod suggest;
mod truncate;
mod units;
mod wrap;

pub use ansi::paint;
pub use columns::truncate_to_columns;
pub use content_text::{content_text, decode_letters, keep_beginning};
pub use decode::decode_text;
pub use escape::{escape, is_hidden};
pub use line_starts::line_starts;
pub use shell_words::{quote_for_shell, quote_path_for_shell};
pub use suggest::suggest_name;
pub(crate) use truncate::MAX_NAME_CHARS;
pub use truncate::truncate;
pub use units::{
    format_bytes, format_count, format_duration, format_time, parse_age, parse_bytes,
    parse_duration,
};
pub use wrap::wrap_words;
