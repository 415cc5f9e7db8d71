//! Text for people: escaping, truncation, units, suggestions.

mod content_text;
mod escape;
mod suggest;
mod units;
mod wrap;

pub use content_text::{content_text, decode_letters, keep_beginning};
pub(crate) use escape::describe_regex_error;
pub use escape::{decode_text, escape, is_hidden, quote_for_shell, quote_path_for_shell};
pub use suggest::suggest_name;
pub use units::{
    MAX_NAMED_TOOLS, format_bytes, format_count, format_duration, format_time, list_some,
    parse_age, parse_bytes, parse_duration, to_millis,
};
pub(crate) use wrap::MAX_NAME_CHARS;
pub use wrap::{line_starts, paint, truncate, truncate_to_columns, wrap_words};
