//! The top-level keys of tools.yaml.
//!
//! Every key is optional here, and each value has its span. The doc comments become the
//! descriptions in tools.schema.json. A `serde(rename)` that begins with `$` is a marker for the deserializer in
//! `spanned`; the names in the file are the field names.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::tools_file::context::{CheckContext, Diagnostics, SourceMap};
use crate::tools_file::key_hints::find_key_hint;
use crate::tools_file::spanned::deserializer::deserialize_node;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::builtins::resolve_builtins;
use crate::tools_file::tables::env::{resolve_env_file, resolve_secrets};
use crate::tools_file::tables::messages::{MessagesFile, resolve_messages};
use crate::tools_file::tables::rules::{RuleFile, ToolRules};
use crate::tools_file::tables::server::ServerFile;
use crate::tools_file::tables::server_tools::{ServerTools, resolve_servers};
use crate::tools_file::tables::tool::{Defaults, NormalizeFile, ToolFile, resolve_normalizers};
use crate::tools_file::tables::tools::{ToolParts, resolve_program_defaults, resolve_tools};
use crate::tools_file::tables::values::PriceNumber;
use crate::tools_file::tables::when::{WhenField, check_when_of};
use crate::tools_file::yaml::YamlNode;
use crate::tools_lock::LockUse;
use crate::types::{
    Effect, EnvFile, FileProblem, MicroUsd, ModelPrice, PriceTable, Span, ToolsConfig,
};

/// Tools that a model may call, and how toolq runs them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tools.yaml", deny_unknown_fields, extend("anyOf" = [{"required": ["tools"]}, {"required": ["servers"]}, {"required": ["include"]}, {"required": ["rules"]}]))]
pub struct ToolsFile {
    /// Version of this format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: Field<u32>,
    /// Files with more `tools`, `rules` and `servers`, in the directory of this file or below it.
    pub include: Field<Vec<Field<String>>>,
    /// Maximum number of calls that run at once, in total. 1 turns parallelism off. Default: 10.
    #[schemars(range(min = 1, max = 10_000))]
    pub concurrency: Field<u32>,
    /// Directory where commands run and that inputs named in `paths` can't leave, relative to the current directory.
    /// Default: the current directory.
    pub root: Field<String>,
    /// Environment variables whose values are masked in all output.
    pub secrets: Field<Vec<Field<String>>>,
    /// File with lines `NAME=value`, relative to this file, for `${NAME}` and `pass_env`. The environment takes precedence.
    /// All values are masked.
    pub env_file: Field<String>,
    /// Built-in tools to enable: `attempt_completion`, `new_task` and `read_output`. A tool of the same name in this file
    /// takes precedence.
    #[schemars(with = "Field<Vec<BuiltinName>>")]
    pub builtins: Field<Vec<Field<String>>>,
    /// Defaults for keys that a tool leaves out.
    pub defaults: Field<Defaults>,
    /// Settings by tool name, such as concurrency safety. They apply to keys that a tool leaves out, before `defaults`; for
    /// each key, the first matching rule counts.
    pub rules: Field<Vec<Field<RuleFile>>>,
    /// Texts for the model when a call fails.
    pub messages: Field<MessagesFile>,
    /// What `toolq replay` replaces in all texts before it compares them, after what a tool's own `normalize` does.
    pub normalize: Field<Vec<Field<NormalizeFile>>>,
    /// Programs that serve tools by the Model Context Protocol (MCP), by name.
    pub servers: Field<SpannedTable<ServerFile>>,
    /// Token prices by model name, in US dollars per million tokens.
    pub prices: Field<SpannedTable<PriceFile>>,
    /// The tools, by name.
    pub tools: Field<SpannedTable<ToolFile>>,
}

/// Token prices of one model, in US dollars per million tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["input", "output"]))]
pub struct PriceFile {
    /// Price of input tokens.
    #[schemars(range(min = 0))]
    pub input: Field<PriceNumber>,
    /// Price of output tokens.
    #[schemars(range(min = 0))]
    pub output: Field<PriceNumber>,
    /// Price of tokens read from a cache. Without it, the cost of responses with such tokens is unknown.
    #[schemars(range(min = 0))]
    pub cache_read: Field<PriceNumber>,
    /// Price of tokens written to a cache. Without it, the cost of responses with such tokens is unknown.
    #[schemars(range(min = 0))]
    pub cache_write: Field<PriceNumber>,
}

/// Names of the built-in tools, for tools.schema.json.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum BuiltinName {
    AttemptCompletion,
    NewTask,
    ReadOutput,
}

impl ToolsFile {
    /// Deserializes the whole file, and returns every problem with its structure.
    pub fn read(tree: &YamlNode) -> (Field<Self>, Vec<FileProblem>) {
        let (file, mut problems) = deserialize_node(tree, "tools.yaml", find_key_hint);
        if file.spanned().is_none() {
            for problem in &mut problems {
                let hint = || "`toolq init` writes an example".to_owned();
                problem.hint.get_or_insert_with(hint);
            }
        }
        (file, problems)
    }
}

/// Returns the JSON Schema (2020-12) of tools.yaml, for editors.
pub fn generate_tools_schema() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ToolsFile>()
        .to_value()
}

/// Calls that run at once if the file doesn't say.
const DEFAULT_CONCURRENCY: u32 = 10;

const MAX_CONCURRENCY: u32 = 10_000;

/// Resolves the whole file. Problems are added to the diagnostics of `context`; if one of them is an error, the result must
/// not be used.
pub(crate) fn resolve_tools_file(
    file: &ToolsFile,
    lock: LockUse<'_>,
    current_dir: &Path,
    context: &mut CheckContext<'_>,
) -> ToolsConfig {
    if let Some(problem) = version_problem(&file.version) {
        context.diagnostics.push(problem);
    }
    let messages = resolve_messages(&file.messages, context.diagnostics);
    let no_defaults = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&no_defaults);
    let settings = &defaults.settings;
    let normalizers = resolve_normalizers(&file.normalize, context.diagnostics);
    let root = current_dir.join(file.root.value().map_or("", String::as_str));
    let programs =
        resolve_program_defaults(defaults, root.components().collect(), context.diagnostics);
    check_has_tools(file, context);
    settings.check_shared(context.diagnostics);
    check_shared_approvals(file, context);
    let rules = ToolRules::read(&file.rules, context.diagnostics);
    let server_tools = ServerTools::new(&file.tools, &file.servers, lock);
    let servers = resolve_servers(&server_tools, defaults, &programs, context.diagnostics);
    let parts = ToolParts {
        defaults: settings,
        rules: &rules,
        programs: &programs,
        normalizers: &normalizers,
        messages: &messages,
        servers: &servers,
        server_tools: &server_tools,
    };
    let mut tools = resolve_tools(&file.tools, &parts, context);
    // Zero is an error that is reported at its own position.
    let max_output = settings.resolve(Effect::Read, false).max_output.max(1);
    tools.extend(resolve_builtins(
        &file.builtins,
        &tools,
        max_output,
        &messages,
        context.diagnostics,
    ));
    let env_file = resolve_env_file(&file.env_file, context);
    let own_files = list_own_files(&env_file, context);
    ToolsConfig {
        // Listed by what may resolve the file again.
        unlocked: Vec::new(),
        secrets: resolve_secrets(
            &file.secrets,
            &programs,
            &tools,
            &servers,
            context.diagnostics,
        ),
        env_file,
        servers: servers.into_values().collect(),
        concurrency: resolve_concurrency(&file.concurrency, context.diagnostics),
        tools,
        root: programs.root,
        dir: context.dir.to_owned(),
        own_files,
        messages,
        prices: resolve_prices(&file.prices, context.diagnostics),
        digest: digest_sources(context.diagnostics.sources()),
    }
}

fn check_has_tools(file: &ToolsFile, context: &mut CheckContext<'_>) {
    let has_host_tools = context.diagnostics.sources().host_text().is_some();
    let has_entries = !file.tools.is_missing() || file.servers.entries().next().is_some();
    // An included file that can't be read has an error of its own.
    let includes_others = !file.include.is_missing();
    if !has_entries && !includes_others && !has_host_tools {
        context.diagnostics.error(
            Span::default(),
            "the file has no `tools`",
            "add `tools:` with each tool below it, by name; `toolq init` writes an example",
        );
    }
}

/// Checks the `approve: {when: SCHEMA}` of the defaults and of each rule. What is known of their inputs is that they are objects.
fn check_shared_approvals(file: &ToolsFile, context: &mut CheckContext<'_>) {
    let any_input = json!({"type": "object"});
    let defaults = file.defaults.value();
    if let Some(field) =
        defaults.and_then(|defaults| WhenField::of_approve(&defaults.settings.tool.approve))
    {
        check_when_of(&field, &["defaults"], &any_input, context);
    }
    for (index, rule) in file.rules.items().enumerate() {
        if let Some(field) = WhenField::of_approve(&rule.value.settings.tool.approve) {
            let parent = ["rules", &index.to_string()];
            check_when_of(&field, &parent, &any_input, context);
        }
    }
}

/// Returns the paths of the files that belong to tools.yaml: included files, the file with variables, and schemas.
fn list_own_files(env_file: &EnvFile, context: &mut CheckContext<'_>) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = context
        .diagnostics
        .sources()
        .included()
        .map(|(path, _)| context.dir.join(path))
        .collect();
    files.extend(env_file.path().map(Path::to_owned));
    files.extend(std::mem::take(&mut context.schema_files));
    files
}

/// Returns the SHA-256 of the text, followed by the path, length and text of each included file, and by the tools of the host
/// process, in hex.
fn digest_sources(sources: &SourceMap) -> String {
    let mut hasher = Sha256::new_with_prefix(sources.main_text());
    for (path, text) in sources.included() {
        let header = format!("\n{}\n{}\n", path.display(), text.len());
        hasher.update(header);
        hasher.update(text);
    }
    if let Some(text) = sources.host_text() {
        hasher.update(format!("\nhost\n{}\n", text.len()));
        hasher.update(text);
    }
    HEXLOWER.encode(&hasher.finalize())
}

pub(crate) fn version_problem(field: &Field<u32>) -> Option<FileProblem> {
    let version = field.outside(1..=1)?;
    let message = format!("version {} of tools.yaml isn't supported", version.value);
    let problem = FileProblem::error(version.span, message, "");
    Some(problem.with_hint("this toolq supports version 1"))
}

fn resolve_concurrency(field: &Field<u32>, diagnostics: &mut Diagnostics) -> NonZeroUsize {
    if let Some(given) = field.outside(1..=MAX_CONCURRENCY) {
        diagnostics.error(
            (given.span, "1 to 10000"),
            format!("{} calls can't run at once", given.value),
            "1 turns parallelism off",
        );
    }
    let given = field.copied().unwrap_or(DEFAULT_CONCURRENCY);
    NonZeroUsize::new(given as usize).unwrap_or(NonZeroUsize::MIN)
}

// Resolves `prices` into whole millionths of a dollar, so that sums are exact.

/// A price of more dollars per million tokens than this is a mistake.
const MAX_PRICE_USD: f64 = 1e6;

/// Returns the token prices by model name.
fn resolve_prices(
    file: &Field<SpannedTable<PriceFile>>,
    diagnostics: &mut Diagnostics,
) -> PriceTable {
    let mut prices = BTreeMap::new();
    for (model, entry) in file.entries() {
        let price = &entry.value;
        for (field, key) in [(&price.input, "input"), (&price.output, "output")] {
            if field.is_missing() {
                diagnostics.error(
                    entry.key_span,
                    format!("the price of {model} has no `{key}`"),
                    format!("add `{key}: …`, in US dollars per million tokens"),
                );
            }
        }
        let mut read =
            |field: &Field<PriceNumber>| Some(to_micro_usd(field.spanned()?, diagnostics));
        let (input, output) = (read(&price.input), read(&price.output));
        let price = ModelPrice {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            cache_read: read(&price.cache_read),
            cache_write: read(&price.cache_write),
        };
        prices.insert(model.to_owned(), price);
    }
    PriceTable(prices)
}

fn to_micro_usd(price: &Spanned<PriceNumber>, diagnostics: &mut Diagnostics) -> MicroUsd {
    let usd = price.value.0;
    if !(0.0..=MAX_PRICE_USD).contains(&usd) {
        diagnostics.error(
            price.span,
            format!("{usd} isn't a valid price"),
            "write US dollars per million tokens: `3.00`",
        );
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1e12, checked above"
    )]
    let micro = (usd * 1e6).round() as MicroUsd;
    micro
}
