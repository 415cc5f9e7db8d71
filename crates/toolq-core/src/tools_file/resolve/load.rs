//! Resolves the text of tools.yaml into tools, or reports every problem in it at once, each with its position and a
//! hint.
//!
//! Checks the structure first, then the schemas, then what the settings mean together. Whether programs, directories
//! and variables exist on this machine is checked in `lints::environment`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::tools_file::keys::{Defaults, ToolsFile};
use crate::tools_file::lints::when_schema::{self, WhenField};
use crate::tools_file::resolve::agent_checks;
use crate::tools_file::resolve::attempt_limits;
use crate::tools_file::resolve::builtins;
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::context::{CheckContext, ToolContext};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::document::{ResolvedDocument, ToolsDocument};
use crate::tools_file::resolve::env_file;
use crate::tools_file::resolve::host_tools::HostTools;
use crate::tools_file::resolve::include::include_files;
use crate::tools_file::resolve::input_schema;
use crate::tools_file::resolve::messages;
use crate::tools_file::resolve::normalizers;
use crate::tools_file::resolve::output_schema;
use crate::tools_file::resolve::prices;
use crate::tools_file::resolve::resource_limits;
use crate::tools_file::resolve::sandbox;
use crate::tools_file::resolve::secrets;
use crate::tools_file::resolve::server::{self, ServersByName};
use crate::tools_file::resolve::server_tools::ServerTools;
use crate::tools_file::resolve::start_limits;
use crate::tools_file::resolve::tool;
use crate::tools_file::resolve::tool::SharedSettings;
use crate::tools_file::resolve::tool_rules::ToolRules;
use crate::tools_file::resolve::unlocked_servers;
use crate::tools_file::secret_names::guess_secret_names;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::Field;
use crate::tools_file::yaml::{YamlNode, parse_yaml};
use crate::tools_lock::LockUse;
use crate::types::{EnvFile, FileProblem, MessageTemplates, Span, Tool, ToolsConfig};

/// Calls that run at once if the file doesn't say.
const DEFAULT_CONCURRENCY: usize = 10;
const MAX_CONCURRENCY: u32 = 10_000;

/// The result of parsing a tools.yaml.
#[derive(Debug)]
pub struct ParsedToolsFile {
    /// The tools, unless a problem is an error.
    pub tools: Option<ToolsConfig>,
    /// In the order of the file.
    pub problems: Vec<FileProblem>,
    /// Names of the environment variables whose values mustn't be shown, not even in excerpts of a file with errors.
    pub secrets: Vec<String>,
    /// The variables of `env_file`, whose values mustn't be shown either.
    pub env_file: EnvFile,
    /// The nodes of the file with their positions, including those of included files, or `None` if the text isn't valid
    /// YAML.
    pub tree: Option<YamlNode>,
    /// The text of the file, and those of the files that it includes.
    pub sources: SourceMap,
}

/// Parses the text of a tools.yaml in the directory `dir`. Its `root` is relative to `current_dir`. Both must be
/// absolute.
pub fn parse_tools_file(text: &str, dir: &Path, current_dir: &Path) -> ParsedToolsFile {
    parse_locked_tools_file(text, dir, current_dir, LockUse::None)
}

/// Like [`parse_tools_file`], with the tools that `lock` has of the file's servers.
pub fn parse_locked_tools_file(
    text: &str,
    dir: &Path,
    current_dir: &Path,
    lock: LockUse<'_>,
) -> ParsedToolsFile {
    parse_with_host_tools((text, None), dir, current_dir, lock)
}

/// Like [`parse_locked_tools_file`], with the tools that a host process has announced, if it has.
pub fn parse_with_host_tools(
    (text, host_tools): (&str, Option<&HostTools>),
    dir: &Path,
    current_dir: &Path,
    lock: LockUse<'_>,
) -> ParsedToolsFile {
    let mut sources = SourceMap::new(text, dir);
    let mut tree = match parse_yaml(text) {
        Ok(tree) => tree,
        Err(problems) => {
            return ParsedToolsFile {
                tools: None,
                problems,
                secrets: guess_secret_names(text),
                env_file: EnvFile::default(),
                tree: None,
                sources,
            };
        }
    };
    let (mut file, mut problems) = ToolsFile::read(&tree);
    if let Some(file) = file.value_mut() {
        problems.extend(include_files(file, &mut tree, &mut sources, dir));
        if let Some(host_tools) = host_tools {
            problems.extend(host_tools.add_to(file, &mut tree, &mut sources));
        }
    }
    let document = Arc::new(ToolsDocument {
        file,
        tree,
        sources,
        dir: dir.to_owned(),
        current_dir: current_dir.to_owned(),
    });
    let ResolvedDocument {
        tools,
        has_errors,
        problems,
    } = document.resolve(lock, problems);
    let secrets = match &tools {
        Some(tools) => tools.secrets.clone(),
        None => guess_secret_names(document.sources.text()),
    };
    let env_file = tools.as_ref().map(|tools| tools.env_file.clone());
    let tools = tools.filter(|_| !has_errors);
    // Servers without a lock keep the document.
    let (tree, sources) = match Arc::try_unwrap(document) {
        Ok(document) => (document.tree, document.sources),
        Err(shared) => (shared.tree.clone(), shared.sources.clone()),
    };
    ParsedToolsFile {
        tools,
        problems,
        secrets,
        env_file: env_file.unwrap_or_default(),
        tree: Some(tree),
        sources,
    }
}

pub(crate) fn resolve_tools_file(
    (file, lock): (&ToolsFile, LockUse<'_>),
    document: &Arc<ToolsDocument>,
    context: &mut CheckContext<'_, '_>,
) -> ToolsConfig {
    check_version(&file.version, context.diagnostics);
    let root: PathBuf = document
        .current_dir
        .join(file.root.value().map_or("", String::as_str))
        .components()
        .collect();
    let mut messages = messages::resolve_messages(&file.messages, context.diagnostics);
    messages.extend(messages::resolve_builtin_wording(&file.messages));
    let no_defaults = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&no_defaults);
    let server_tools = ServerTools::new(file, lock);
    let command_defaults = CommandDefaults::resolve(defaults, &root, context.diagnostics);
    let servers = server::resolve_servers(
        (file, &server_tools),
        (defaults, &command_defaults),
        &root,
        context.diagnostics,
    );
    let parts = (&messages, &servers, &server_tools, &command_defaults);
    let mut tools = resolve_tools(file, &root, parts, context);
    tools.extend(builtins::resolve_builtins(
        file,
        &tools,
        &messages,
        context.diagnostics,
    ));
    let env_file = env_file::resolve_env_file(&file.env_file, context);
    let mut own_files = included_files(context);
    own_files.extend(env_file.path().map(Path::to_owned));
    let unlocked = unlocked_servers::list_unlocked(
        &server_tools,
        &servers,
        document,
        context.diagnostics.problems(),
    );
    let tools = ToolsConfig {
        unlocked,
        secrets: secrets::resolve_secrets(
            (file, &command_defaults),
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
        prices: prices::resolve_prices(&file.prices, context.diagnostics),
        digest: digest_sources(context.diagnostics.sources()),
    };
    // What servers announce can't make an agent invalid.
    if !server_tools.has_announced() {
        agent_checks::check_agents(file, &tools, context.diagnostics);
    }
    tools
}

/// Returns the paths of the included files.
fn included_files(context: &CheckContext<'_, '_>) -> Vec<PathBuf> {
    let included = context.diagnostics.sources().included();
    included.map(|(path, _)| context.dir.join(path)).collect()
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

fn resolve_tools(
    file: &ToolsFile,
    root: &Path,
    (messages, servers, server_tools, command_defaults): (
        &MessageTemplates,
        &ServersByName,
        &ServerTools<'_>,
        &CommandDefaults,
    ),
    context: &mut CheckContext<'_, '_>,
) -> Vec<Arc<Tool>> {
    let has_host_tools = context.diagnostics.sources().host_text().is_some();
    if file.tools.is_missing() && file.servers.entries().next().is_none() && !has_host_tools {
        context.diagnostics.error(
            Span::default(),
            "the file has no `tools`",
            "",
            "add `tools:` with each tool below it, by name; `toolq init` writes an example",
        );
    }
    let no_defaults = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&no_defaults);
    attempt_limits::check_timeout(&defaults.timeout, context.diagnostics);
    attempt_limits::check_retry(&defaults.retry, context.diagnostics);
    attempt_limits::check_max_output(&defaults.max_output, context.diagnostics);
    resource_limits::check_resource_limits(&defaults.limits, context.diagnostics);
    sandbox::check_shared_sandbox(&defaults.sandbox, context.diagnostics);
    start_limits::check_start_limits(&defaults.max_parallel, &defaults.rate, context.diagnostics);
    check_shared_approvals(file, context);
    let rules = ToolRules::read(&file.rules, context.diagnostics);
    let undeclared = server_tools.list_undeclared(context.diagnostics);
    let names = file.tools.entries().map(|(name, _)| name);
    let names = names.chain(undeclared.iter().map(|tool| &*tool.name));
    let names: Vec<&str> = names.collect();
    rules.warn_about_unused(&names, context.diagnostics);
    let normalizers = normalizers::resolve_normalizers(&file.normalize, context.diagnostics);
    let shared = SharedSettings {
        defaults,
        rules: &rules,
        normalizers: &normalizers,
        messages,
        servers,
        server_tools,
    };
    let mut tools = Vec::new();
    let resolve = |name: &str, tool, schema: &Value, diagnostics: &mut Diagnostics<'_>| {
        let mut tool_context = ToolContext {
            schema,
            root,
            paths: Vec::new(),
            has_no_paths: false,
            command_defaults,
            sandbox: None,
            wrapper: None,
            diagnostics,
        };
        tool::resolve_tool(name, tool, &shared, &mut tool_context)
    };
    for (name, tool) in file.tools.entries() {
        let schema = input_schema::resolve_input_schema(name, tool, server_tools, context);
        when_schema::check_when(name, tool, &schema, context);
        let mut resolved = resolve(name, tool, &schema, context.diagnostics);
        resolved.awaits_list = server_tools.awaits_list(name, &tool.value);
        resolved.output_schema =
            output_schema::resolve_output_schema(name, &tool.value, resolved.output, context);
        tools.push(Arc::new(resolved));
    }
    for tool in &undeclared {
        let resolved = resolve(&tool.name, &tool.entry, &tool.schema, context.diagnostics);
        tools.push(Arc::new(resolved));
    }
    tools
}

/// Checks the `approve: {when: SCHEMA}` of the defaults and of each rule.
fn check_shared_approvals(file: &ToolsFile, context: &mut CheckContext<'_, '_>) {
    let defaults = file.defaults.value();
    if let Some(field) = defaults.and_then(|defaults| WhenField::of_approve(&defaults.approve)) {
        when_schema::check_shared_when(&field, &["defaults"], context);
    }
    for (index, rule) in file.rules.items().enumerate() {
        if let Some(field) = WhenField::of_approve(&rule.value.approve) {
            when_schema::check_shared_when(&field, &["rules", &index.to_string()], context);
        }
    }
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
