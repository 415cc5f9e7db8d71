//! Prints panics as one line. It is masked and escaped like all messages, because it can contain a part of the input.

use std::panic::{self, PanicHookInfo};

use crate::output::stderr::StderrWriter;

/// Installs the panic hook. It only prints; whether the program ends depends on where the panic is caught.
pub fn install_hook() {
    panic::set_hook(Box::new(|panic| {
        StderrWriter::print_panic(&panic_message(panic));
    }));
}

/// Formats a message such as `toolq panicked at src/context.rs:12:5: index out of bounds`.
fn panic_message(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    match panic.location() {
        Some(location) => format!("toolq panicked at {location}: {message}"),
        None => format!("toolq panicked: {message}"),
    }
}
