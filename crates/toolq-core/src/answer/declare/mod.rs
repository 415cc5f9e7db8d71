//! Tools → the declarations that each API expects, or a section of a prompt.

mod declarations;
mod markdown;

pub use declarations::{Declare, declare};
