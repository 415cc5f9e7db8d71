//! JSON as text. Nothing here builds a tree, so numbers keep their digits and objects keep the order of their keys.

mod decimal;
mod input;
mod value;
mod writing;

pub(crate) use decimal::rounded_integer;
pub use decimal::{Decimal, find_lost_digits};
pub use input::{Input, InvalidInput, MAX_INPUT_BYTES, check_json, to_json_line};
pub(crate) use input::{MAX_INPUT_VALUES, describe_parse_error, parse_error_offset};
pub(crate) use value::{DuplicateKey, ObjectIter, unescape_pointer_token};
pub use value::{
    JsonKind, JsonText, ParsedObject, escape_pointer_token, json_pointer, pointer_tokens,
};
pub(crate) use writing::{EachOf, JsonEdits};
pub use writing::{expect_json, indent_json, join_json_lines, meaning_digest};
