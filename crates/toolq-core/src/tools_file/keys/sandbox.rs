//! The key `sandbox`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::spanned::Field;
use crate::types::MissingProtection;

/// What a program can reach, or `false`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a table such as `{read: [root, system], network: none}`, or `false`"
)]
#[schemars(rename = "Sandbox", untagged)]
pub enum SandboxForm {
    /// `false`: the program isn't confined.
    Boolean(bool),
    /// What the program can reach.
    Table(Box<SandboxTable>),
}

/// What a program, and all that it starts, can reach.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxTable {
    /// Files, and directories with everything in them, that it may read and execute: paths, `root`, or `system`, which is
    /// what programs need to start. Default: `[root, system]`.
    pub read: Field<Vec<Field<String>>>,
    /// Files, and directories with everything in them, that it may also change: paths, or `root`. Default: none, besides
    /// a private temporary directory.
    pub write: Field<Vec<Field<String>>>,
    /// What it may reach over the network: `none` (the default), `all`, or a list of TCP ports.
    pub network: Field<NetworkForm>,
    /// What happens if the system can't do all of this: `refuse` (the default) or `warn`.
    pub missing: Field<MissingProtection>,
}

/// What a program may reach over the network.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "`none`, `all`, or a list of TCP ports such as `[443]`"
)]
#[schemars(rename = "Network", untagged)]
pub enum NetworkForm {
    /// Nothing or everything.
    Text(NetworkWord),
    /// TCP ports that it may connect to.
    List(Vec<Field<u16>>),
}

/// Nothing or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkWord {
    /// Nothing.
    None,
    /// Everything.
    All,
}
