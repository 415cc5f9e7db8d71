//! JSON text, read without building a tree, so that numbers keep their digits and objects the order of their keys.

mod cursor;
mod input;
mod line;
mod opened;
mod pretty;
mod strict;
mod value;

pub(crate) use cursor::quote_or_backslash;
pub use input::{Input, InputFault, MAX_INPUT_BYTES};
pub use line::json_line;
pub(crate) use opened::Opened;
pub use pretty::pretty;
pub use strict::check_json;
pub use value::{Json, Object};
pub(crate) use value::{Objects, Twice};
