//! `toolq log`: a file for each verb.

mod resolve;

use crate::cli::arguments::{Log as Arguments, LogVerb};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;

/// Does what the verb says.
///
/// # Errors
/// A log that can't be used, with its place and what to do.
pub fn log(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    match &arguments.verb {
        LogVerb::Resolve(arguments) => resolve::resolve(arguments, context),
    }
}
