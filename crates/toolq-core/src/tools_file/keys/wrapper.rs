//! The key `wrapper`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::keys::backing::Argv;
use crate::tools_file::spanned::Field;
use crate::types::WrapperQuoting;

/// A program that runs the program of a tool or server, and its arguments before that.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a list of a program and its arguments, such as `[nice, -n, \"5\"]`, or `{argv: [ssh, HOST], quote: posix}`"
)]
#[schemars(rename = "Wrapper", untagged)]
pub enum WrapperForm {
    /// The program and its arguments. An empty list stands for no wrapper.
    List(Argv),
    /// The same, for a program that takes shell text.
    Table(WrapperTable),
}

/// A wrapper, and how it gets what it runs.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["argv"]))]
pub struct WrapperTable {
    /// The program and its arguments.
    pub argv: Field<Argv>,
    /// `none`: what it runs follows as arguments. `posix`: as one argument, in which each of them is quoted for a POSIX shell.
    /// Default: `none`.
    pub quote: Field<WrapperQuoting>,
}
