//! Resolves a whole tools.yaml: the settings of the file itself, its servers, and all tools.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::template::is_variable_name;
use crate::tools_file::keys::{Defaults, PriceFile, PriceNumber, ToolsFile};
use crate::tools_file::resolve::agent_tool_checks::check_agent_tool;
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::context::CheckContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::document::ToolsDocument;
use crate::tools_file::resolve::server::{self, ServersByName};
use crate::tools_file::resolve::server_tools::ServerTools;
use crate::tools_file::resolve::tools::{ToolParts, resolve_tools};
use crate::tools_file::resolve::{builtins, env_file, messages, start_limits, unlocked_servers};
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_lock::LockUse;
use crate::types::{
    AgentBacking, Backing, EnvFile, MicroUsd, ModelPrice, PriceTable, Span, Template, Tool,
    ToolsConfig,
};

/// Calls that run at once if the file doesn't say.
const DEFAULT_CONCURRENCY: usize = 10;
const MAX_CONCURRENCY: u32 = 10_000;

/// Resolves the whole file. Problems are added to the diagnostics of `context`; if one of them is an error, the result must
/// not be used.
pub(crate) fn resolve_tools_file(
    file: &ToolsFile,
    lock: LockUse<'_>,
    document: &Arc<ToolsDocument>,
    context: &mut CheckContext<'_, '_>,
) -> ToolsConfig {
    check_version(&file.version, context.diagnostics);
    let root = resolve_root(file, document);
    let mut messages = messages::resolve_messages(&file.messages, context.diagnostics);
    messages.extend(messages::resolve_builtin_wording(&file.messages));
    let no_defaults = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&no_defaults);
    let server_tools = ServerTools::new(file, lock);
    let command_defaults = CommandDefaults::resolve(defaults, &root, context.diagnostics);
    let servers = server::resolve_servers(
        file,
        &server_tools,
        defaults,
        &command_defaults,
        &root,
        context.diagnostics,
    );
    let parts = ToolParts {
        root: &root,
        messages: &messages,
        servers: &servers,
        server_tools: &server_tools,
        command_defaults: &command_defaults,
    };
    let tools = resolve_all_tools(file, &parts, context);
    let env_file = env_file::resolve_env_file(&file.env_file, context);
    let own_files = list_own_files(&env_file, context);
    let unlocked = unlocked_servers::list_unlocked(
        &server_tools,
        &servers,
        document,
        context.diagnostics.problems(),
    );
    let tools = ToolsConfig {
        unlocked,
        secrets: resolve_secrets(
            file,
            &command_defaults,
            &tools,
            &servers,
            context.diagnostics,
        ),
        env_file,
        servers: servers.into_values().collect(),
        concurrency: resolve_concurrency(&file.concurrency, context.diagnostics),
        tools,
        root,
        dir: context.dir.to_owned(),
        own_files,
        messages,
        formats: file.formats.value().copied().unwrap_or_default(),
        hosts: start_limits::resolve_hosts(&file.hosts, context.diagnostics),
        prices: resolve_prices(&file.prices, context.diagnostics),
        digest: digest_sources(context.diagnostics.sources()),
    };
    // What servers announce can't make an agent invalid.
    if !server_tools.has_announced() {
        check_agents(file, &tools, context.diagnostics);
    }
    tools
}

fn resolve_root(file: &ToolsFile, document: &ToolsDocument) -> PathBuf {
    document
        .current_dir
        .join(file.root.value().map_or("", String::as_str))
        .components()
        .collect()
}

/// Resolves the tools of the file and, after them, the built-in ones.
fn resolve_all_tools(
    file: &ToolsFile,
    parts: &ToolParts<'_>,
    context: &mut CheckContext<'_, '_>,
) -> Vec<Arc<Tool>> {
    let mut tools = resolve_tools(file, parts, context);
    tools.extend(builtins::resolve_builtins(
        file,
        &tools,
        parts.messages,
        context.diagnostics,
    ));
    tools
}

/// Returns the paths of the files that belong to tools.yaml: included files, the file with variables, and schemas.
fn list_own_files(env_file: &EnvFile, context: &mut CheckContext<'_, '_>) -> Vec<PathBuf> {
    let included = context.diagnostics.sources().included();
    let mut files: Vec<PathBuf> = included.map(|(path, _)| context.dir.join(path)).collect();
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

fn check_version(field: &Field<u32>, diagnostics: &mut Diagnostics<'_>) {
    if let Some(version) = field.spanned().filter(|version| version.value != 1) {
        diagnostics.error(
            version.span,
            format!("version {} of tools.yaml isn't supported", version.value),
            "",
            "this toolq supports version 1",
        );
    }
}

fn resolve_concurrency(field: &Field<u32>, diagnostics: &mut Diagnostics<'_>) -> NonZeroUsize {
    let default = NonZeroUsize::new(DEFAULT_CONCURRENCY).unwrap_or(NonZeroUsize::MIN);
    let Some(given) = field.spanned() else {
        return default;
    };
    if !(1..=MAX_CONCURRENCY).contains(&given.value) {
        diagnostics.error(
            given.span,
            format!("{} calls can't run at once", given.value),
            "1 to 10000",
            "1 turns parallelism off",
        );
    }
    NonZeroUsize::new(given.value as usize).unwrap_or(default)
}

// Checks agents against the rest of the file, once all tools are known.

/// Checks each agent against the tools that it lists and the prices that its budget needs.
fn check_agents(file: &ToolsFile, tools: &ToolsConfig, diagnostics: &mut Diagnostics<'_>) {
    for (name, entry) in file.tools.entries() {
        let (Some(agent), Some(tool)) = (entry.value.agent.value(), tools.get(name)) else {
            continue;
        };
        for (index, tool_name) in agent.tools.items().enumerate() {
            if agent
                .tools
                .items()
                .take(index)
                .any(|other| other.value == tool_name.value)
            {
                let message = format!("`{}` is listed twice in `tools`", tool_name.value);
                diagnostics.error(
                    tool_name.span,
                    message,
                    "repeated here",
                    "remove one of them",
                );
            } else {
                check_agent_tool(tool, tool_name, tools, diagnostics);
            }
        }
        if let (Some(usd), Some(Backing::Agent(backing))) = (
            agent.budget.value().and_then(|budget| budget.usd.spanned()),
            &tool.backing,
        ) {
            check_prices(backing, usd.span, tools, diagnostics);
        }
    }
}

/// Checks that the models of an agent with a budget in dollars have prices. A model that is named by a variable is
/// looked up when it responds.
fn check_prices(
    backing: &AgentBacking,
    span: Span,
    tools: &ToolsConfig,
    diagnostics: &mut Diagnostics<'_>,
) {
    let models = [Some(&backing.model), backing.fallback_model.as_ref()];
    for model in models.into_iter().flatten().filter_map(Template::sole_text) {
        if tools.prices.for_model(model).is_none() {
            diagnostics.error(
                span,
                format!("`prices` has no entry for {model}"),
                "needs prices",
                format!("add `prices: {{{model}: {{input: …, output: …}}}}` next to `tools`"),
            );
        }
    }
}

// Resolves `prices` into whole millionths of a dollar, so that sums are exact.

/// A price of more dollars per million tokens than this is a mistake.
const MAX_PRICE_USD: f64 = 1e6;

/// Returns the token prices by model name.
fn resolve_prices(
    file: &Field<SpannedTable<PriceFile>>,
    diagnostics: &mut Diagnostics<'_>,
) -> PriceTable {
    let mut prices = BTreeMap::new();
    for (model, entry) in file.entries() {
        let price = &entry.value;
        for (field, key) in [(&price.input, "input"), (&price.output, "output")] {
            if field.is_missing() {
                diagnostics.error(
                    entry.key_span,
                    format!("the price of {model} has no `{key}`"),
                    "",
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

fn to_micro_usd(price: &Spanned<PriceNumber>, diagnostics: &mut Diagnostics<'_>) -> MicroUsd {
    let PriceNumber(usd) = price.value;
    if !(0.0..=MAX_PRICE_USD).contains(&usd) {
        diagnostics.error(
            price.span,
            format!("{usd} isn't a valid price"),
            "",
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

// Finds the environment variables whose values are secrets, and so are masked in all output.

/// Returns the names under `secrets`, and those of the variables that are used for credentials.
fn resolve_secrets(
    file: &ToolsFile,
    defaults: &CommandDefaults,
    tools: &[Arc<Tool>],
    servers: &ServersByName,
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<String> {
    let mut names = BTreeSet::new();
    for name in file.secrets.items() {
        if !is_variable_name(&name.value) {
            diagnostics.error(
                name.span,
                format!(
                    "`{}` isn't a valid name for an environment variable",
                    name.value
                ),
                "",
                "`secrets` lists the names of variables, never their values",
            );
        }
        names.insert(name.value.clone());
    }
    let backings = tools.iter().filter_map(|tool| tool.backing.as_ref());
    for template in backings.flat_map(confidential_templates) {
        names.extend(template.env_names().map(str::to_owned));
    }
    // Also for a `probe` whose tool has no command.
    for (_, template) in &defaults.env {
        names.extend(template.env_names().map(str::to_owned));
    }
    let server_secrets = servers.values().flat_map(|server| server.secret_names());
    names.extend(server_secrets.map(str::to_owned));
    names.into_iter().collect()
}

/// Returns the templates whose variables are secrets.
fn confidential_templates(backing: &Backing) -> Vec<&Template> {
    let templates = |pairs| -> &[(String, Template)] { pairs };
    let api_key = match backing {
        Backing::Agent(agent) => agent.api_key.as_ref(),
        Backing::Command(_)
        | Backing::Http(_)
        | Backing::Mcp(_)
        | Backing::Builtin(_)
        | Backing::Host => None,
    };
    let (one, other) = match backing {
        Backing::Command(command) => (templates(&command.env), templates(&[])),
        Backing::Http(http) => (templates(&http.headers), templates(&http.query)),
        Backing::Agent(agent) => (templates(&agent.headers), templates(&[])),
        // The variables of a server belong to the server, not to one of its tools.
        Backing::Mcp(_) | Backing::Builtin(_) | Backing::Host => return Vec::new(),
    };
    let pairs = one.iter().chain(other);
    api_key
        .into_iter()
        .chain(pairs.map(|(_, template)| template))
        .collect()
}
