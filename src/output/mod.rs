//! What a command writes: stdout, stderr, diagnostics and the exit code.

mod color;
pub(crate) mod diagnostics;
mod error;
mod exit;
mod line_col;
pub(crate) mod panics;
mod printer;
mod screen_device;
mod stderr;
pub(crate) mod stdout;
mod stdout_probe;

pub(crate) use color::Color;
pub(crate) use error::Failure;
pub(crate) use exit::Exit;
pub(crate) use printer::Printer;
pub(crate) use screen_device::Terminal;
pub(crate) use stderr::Stderr;
pub(crate) use stdout::OutputLost;
