//! The key `approve`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::keys::tool::JsonObject;
use crate::tools_file::spanned::Field;

/// Whether calls start only after they are approved.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "`true`, `false`, `writes` or `{when: SCHEMA}`"
)]
#[schemars(rename = "Approve", untagged)]
pub enum ApproveForm {
    /// Always or never.
    Boolean(bool),
    /// Depending on the tool.
    Text(ApproveWord),
    /// Depending on the input.
    Table(ApproveTable),
}

/// Which tools need an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApproveWord {
    /// Those that aren't `read`.
    Writes,
}

/// An approval that depends on the input.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["when"]))]
pub struct ApproveTable {
    /// JSON Schema of the inputs whose calls start only after they are approved.
    #[schemars(with = "Field<JsonObject>")]
    pub when: Field<Value>,
}
