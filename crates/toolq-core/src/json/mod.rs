//! JSON as text. Nothing here builds a tree, so numbers keep their digits and objects keep the order of their keys.

mod canonical;
mod cursor;
mod decimal;
mod edits;
mod expect_json;
mod input;
mod kind;
mod line;
mod lost_digits;
mod parse_error;
mod pointer;
mod pretty;
mod shallow;
mod strict;
mod value;

pub use canonical::meaning_digest;
pub(crate) use cursor::find_quote_or_backslash;
pub(crate) use decimal::Decimal;
pub(crate) use edits::JsonEdits;
pub use expect_json::expect_json;
pub(crate) use input::MAX_INPUT_VALUES;
pub use input::{Input, InvalidInput, MAX_INPUT_BYTES};
pub use kind::JsonKind;
pub use line::to_json_line;
pub use lost_digits::find_lost_digits;
pub(crate) use lost_digits::rounded_integer;
pub(crate) use parse_error::describe_parse_error;
pub(crate) use pointer::unescape_pointer_token;
pub use pointer::{escape_pointer_token, json_pointer, pointer_tokens};
pub use pretty::{indent_json, join_json_lines};
pub(crate) use shallow::ShallowJson;
pub use strict::check_json;
pub(crate) use value::{DuplicateKey, ObjectIter};
pub use value::{JsonText, ParsedObject};
