//! Replace secrets in text and byte streams with `[masked]`, however they are escaped or encoded.
//!
//! A [`Mask`] is built once from the values of all secrets. [`Mask::apply`] masks a text, [`MaskedStream`] masks bytes
//! that arrive in pieces, in time linear in the bytes and memory linear in the longest secret.
//!
//! ```
//! let mask = redact::Mask::new(["hunter2-hunter2"]);
//! assert_eq!(mask.apply("password=hunter2-hunter2"), "password=[masked]");
//! ```

mod decoder;
mod mask;
#[cfg(test)]
mod property_tests;
mod scanner;
mod spellings;

pub use mask::{Mask, MaskedStream};
