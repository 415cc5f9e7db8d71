//! Resolves a whole tools.yaml: the settings of the file itself, its servers, and all tools.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::tools_file::keys::{Defaults, ToolsFile};
use crate::tools_file::resolve::agent_checks;
use crate::tools_file::resolve::builtins;
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::context::CheckContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::document::ToolsDocument;
use crate::tools_file::resolve::env_file;
use crate::tools_file::resolve::messages;
use crate::tools_file::resolve::prices;
use crate::tools_file::resolve::secrets;
use crate::tools_file::resolve::server;
use crate::tools_file::resolve::server_tools::ServerTools;
use crate::tools_file::resolve::start_limits;
use crate::tools_file::resolve::tools::{ToolParts, resolve_tools};
use crate::tools_file::resolve::unlocked_servers;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::Field;
use crate::tools_lock::LockUse;
use crate::types::{EnvFile, Tool, ToolsConfig};

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
        secrets: secrets::resolve_secrets(
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
        prices: prices::resolve_prices(&file.prices, context.diagnostics),
        digest: digest_sources(context.diagnostics.sources()),
    };
    // What servers announce can't make an agent invalid.
    if !server_tools.has_announced() {
        agent_checks::check_agents(file, &tools, context.diagnostics);
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
