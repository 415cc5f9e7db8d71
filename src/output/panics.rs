//! What people see of a panic: where and what, as one line that is masked and escaped like all others. The message may
//! hold a piece of the text that toolq stumbled over.

use std::panic::{self, PanicHookInfo};

use crate::output::stderr::Stderr;

/// Says it so from now on. What a panic ends is decided by who catches it.
pub fn tell() {
    panic::set_hook(Box::new(|panic| Stderr::panicked(&words(panic))));
}

/// `toolq panicked at src/model/call.rs:12:5: index out of bounds`.
fn words(panic: &PanicHookInfo<'_>) -> String {
    let said = panic.payload_as_str().unwrap_or("without words");
    match panic.location() {
        Some(place) => format!("toolq panicked at {place}: {said}"),
        None => format!("toolq panicked: {said}"),
    }
}
