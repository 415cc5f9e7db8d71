//! `wrapper`: a program that runs the programs of tools.

/// A program that runs another, and its arguments before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWrapper {
    /// The program and its arguments: never empty, and without values from an input.
    pub argv: Vec<String>,
    /// The program in `argv` that hands over to a daemon or another host, whose processes don't end with the call.
    pub hands_over_to: Option<String>,
}
