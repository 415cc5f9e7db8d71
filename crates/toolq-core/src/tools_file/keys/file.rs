//! tools.yaml as its author wrote it: every key optional, nothing resolved, each value with its place.
//!
//! The doc comments here are the descriptions in tools.schema.json. A name in `serde(rename)` that begins with `$` is
//! for the reader of settings; what the file calls things stands in the field names.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::keys::key_hints;
use crate::tools_file::keys::tool::{Defaults, MessagesFile, ToolFile};
use crate::tools_file::keys::values::PriceNumber;
use crate::tools_file::spanned::{Setting, Table, read};
use crate::tools_file::yaml::Node;
use crate::types::Problem;

/// The tools that a model may call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tools.yaml", deny_unknown_fields, extend("required" = ["tools"]))]
pub struct ToolsFile {
    /// The version of this format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: Setting<u32>,
    /// How many calls run at once, over everything. Default: 10; 1 turns parallelism off.
    #[schemars(range(min = 1, max = 10_000))]
    pub concurrency: Setting<u32>,
    /// Commands run here, and inputs named in `paths` must stay inside. Relative to the current directory; default: it.
    pub root: Setting<String>,
    /// Environment variables whose values are masked in every output.
    pub secrets: Setting<Vec<Setting<String>>>,
    /// Tools that toolq has itself: `attempt_completion` and `new_task`. A tool of the file that has such a name wins.
    #[schemars(with = "Setting<Vec<BuiltinName>>")]
    pub builtins: Setting<Vec<Setting<String>>>,
    /// For whatever a tool leaves out.
    pub defaults: Setting<Defaults>,
    /// Concurrency safety by name. The first rule that matches decides for tools that don't say it themselves.
    pub rules: Setting<Vec<Setting<RuleFile>>>,
    /// The texts that a model reads when a call fails.
    pub messages: Setting<MessagesFile>,
    /// What the tokens of a model cost, by its name: US dollars for a million.
    pub prices: Setting<Table<PriceFile>>,
    /// The tools by name.
    pub tools: Setting<Table<ToolFile>>,
}

/// Whether tools of certain names may run beside others.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["tools", "concurrency_safe"]))]
pub struct RuleFile {
    /// A glob over tool names: `*`, `?`, `[a-z]`, `{get,list}_*`.
    pub tools: Setting<String>,
    /// Whether they may run beside other safe calls.
    pub concurrency_safe: Setting<bool>,
}

/// What tokens of one model cost: US dollars for a million.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["input", "output"]))]
pub struct PriceFile {
    /// Of tokens that it reads.
    #[schemars(range(min = 0))]
    pub input: Setting<PriceNumber>,
    /// Of tokens that it writes.
    #[schemars(range(min = 0))]
    pub output: Setting<PriceNumber>,
    /// Of tokens read from a cache. Without it, answers with such tokens have no known cost.
    #[schemars(range(min = 0))]
    pub cache_read: Setting<PriceNumber>,
    /// Of tokens put into a cache. Without it, answers with such tokens have no known cost.
    #[schemars(range(min = 0))]
    pub cache_write: Setting<PriceNumber>,
}

/// For the schema of this file.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum BuiltinName {
    AttemptCompletion,
    NewTask,
}

impl ToolsFile {
    /// Reads the whole file with every problem of its form.
    pub fn read(tree: &Node) -> (Setting<Self>, Vec<Problem>) {
        let (file, mut problems) = read(tree, "tools.yaml", key_hints::cure);
        if file.given().is_none() {
            for problem in &mut problems {
                let hint = || "`toolq init` writes an example".to_owned();
                problem.hint.get_or_insert_with(hint);
            }
        }
        (file, problems)
    }
}

/// JSON Schema (2020-12) of tools.yaml, for editors.
pub fn tools_schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    settings
        .into_generator()
        .into_root_schema_for::<ToolsFile>()
        .to_value()
}
