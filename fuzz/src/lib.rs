//! What must hold for any bytes: the bodies of the fuzz targets, as functions that panic on a violation.
//!
//! `targets/` hands them the bytes of the fuzzer, and `tests/engine/fuzz_corpus.rs` those of the committed corpus. Where
//! possible, a target compares the code with a second, simpler statement of the rule.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a target panics on every violation, and a value that is missing is one"
)]

mod choices;
mod coercion;
mod documents;
#[cfg(feature = "engine")]
mod gate;
mod json_text;
mod json_tree;
mod masking;
mod mutated_streams;
mod session_log;
mod sse;
mod streams;
mod templates;
mod tools_file;
mod vendor_message;

pub use coercion::coercion;
pub use documents::documents;
#[cfg(feature = "engine")]
pub use gate::gate;
pub use json_text::json_text;
pub use masking::masking;
pub use mutated_streams::mutated_streams;
pub use session_log::session_log;
pub use sse::sse;
pub use streams::streams;
pub use templates::templates;
pub use tools_file::tools_file;

/// A target: its name, and the function that checks one input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("coercion", coercion),
    ("documents", documents),
    #[cfg(feature = "engine")]
    ("gate", gate),
    ("json_text", json_text),
    ("masking", masking),
    ("mutated_streams", mutated_streams),
    ("session_log", session_log),
    ("sse", sse),
    ("streams", streams),
    ("templates", templates),
    ("tools_file", tools_file),
];
