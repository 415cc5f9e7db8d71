//! Parses the text of tools.yaml and resolves it, or reports every problem in it at once, each with its position and a
//! hint.
//!
//! Checks the structure first, then the schemas, then what the settings mean together. Whether programs, directories
//! and variables exist on this machine is checked in `lints`.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::template::is_variable_name;
use crate::tools_file::context::{CheckContext, Diagnostics, SourceMap};
use crate::tools_file::include::{HostToolDeclarations, HostToolProblem, include_files};
use crate::tools_file::spanned::Field;
use crate::tools_file::tables::agent_tools::check_agents;
use crate::tools_file::tables::file::{ToolsFile, resolve_tools_file};
use crate::tools_file::tables::server_tools::{ServerTools, model_name};
use crate::tools_file::yaml::YamlNode;
use crate::tools_file::yaml::parse::parse_yaml;
use crate::tools_lock::{LockUse, ToolsLock};
use crate::types::{
    Backing, EnvFile, FileProblem, ServerConfig, ServerLock, Severity, Tool, ToolResolver,
    ToolsConfig, UnlockedServer,
};

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
    /// The other files that it was read from, absolute: those that it includes, its `env_file`, and files with schemas.
    pub other_files: Vec<PathBuf>,
    /// The nodes of the file with their positions, including those of included files, or `None` if the text isn't valid
    /// YAML.
    pub tree: Option<YamlNode>,
    /// The text of the file, and those of the files that it includes.
    pub sources: SourceMap,
}

impl HostToolDeclarations {
    /// Returns the errors in these tools, if `loaded` was parsed with them. Others are in the file.
    pub fn find_errors(&self, loaded: &ParsedToolsFile) -> Vec<HostToolProblem> {
        let tree = parse_yaml(&self.text).ok();
        loaded
            .problems
            .iter()
            .filter(|problem| {
                problem.severity == Severity::Error && loaded.sources.is_from_host(problem.span)
            })
            .map(|problem| {
                let offset = loaded.sources.locate(problem.span).span.start;
                let path = tree.as_ref().map(|tree| tree.path_at(offset));
                HostToolProblem {
                    // The first key is `tools`.
                    at: path.unwrap_or_default().into_iter().skip(1).collect(),
                    message: problem.message.clone(),
                    hint: problem.hint.clone(),
                }
            })
            .collect()
    }
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
    (text, host_tools): (&str, Option<&HostToolDeclarations>),
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
                other_files: Vec::new(),
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
        sources: Arc::new(sources),
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
    let other_files = tools.as_ref().map(|tools| tools.own_files.clone());
    let tools = tools.filter(|_| !has_errors);
    // Servers without a lock keep the document.
    let (tree, sources) = match Arc::try_unwrap(document) {
        Ok(document) => (document.tree, document.sources),
        Err(shared) => (shared.tree.clone(), Arc::clone(&shared.sources)),
    };
    ParsedToolsFile {
        tools,
        problems,
        secrets,
        env_file: env_file.unwrap_or_default(),
        other_files: other_files.unwrap_or_default(),
        tree: Some(tree),
        sources: Arc::unwrap_or_clone(sources),
    }
}

/// The keys of a tools.yaml and of the files that it includes.
#[derive(Debug)]
pub(crate) struct ToolsDocument {
    pub(crate) file: Field<ToolsFile>,
    pub(crate) tree: YamlNode,
    pub(crate) sources: Arc<SourceMap>,
    /// The directory of tools.yaml.
    pub(crate) dir: PathBuf,
    pub(crate) current_dir: PathBuf,
}

/// The tools of a document, and its problems in the order of the file.
pub(crate) struct ResolvedDocument {
    /// `None` if the structure of the file is wrong. If a problem is an error, they can't be used.
    pub(crate) tools: Option<ToolsConfig>,
    pub(crate) has_errors: bool,
    pub(crate) problems: Vec<FileProblem>,
}

impl ToolsDocument {
    /// Resolves the document. `problems` are those that are known already.
    pub(crate) fn resolve(
        self: &Arc<Self>,
        lock: LockUse<'_>,
        problems: Vec<FileProblem>,
    ) -> ResolvedDocument {
        let mut diagnostics = Diagnostics::new(Arc::clone(&self.sources), problems);
        let tools = self.file.value().map(|file| {
            let mut context = CheckContext {
                tree: &self.tree,
                dir: &self.dir,
                schema_files: BTreeSet::new(),
                diagnostics: &mut diagnostics,
            };
            let mut tools = resolve_tools_file(file, lock, &self.current_dir, &mut context);
            let server_tools = ServerTools::new(&file.tools, &file.servers, lock);
            let known = diagnostics.problems();
            tools.unlocked = list_unlocked(&server_tools, self, &tools.servers, known);
            // What servers announce can't make an agent invalid.
            if !server_tools.has_announced() {
                check_agents(&file.tools, &tools, &mut diagnostics);
            }
            tools
        });
        ResolvedDocument {
            tools,
            has_errors: diagnostics.has_errors(),
            problems: diagnostics.into_sorted(),
        }
    }
}

/// Returns the names after `secrets:`, up to the next key of the file, and those of all variables in templates.
fn guess_secret_names(text: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut is_in_secrets = false;
    for line in text.lines() {
        let begins_key =
            line.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '"' | '\''));
        if begins_key {
            is_in_secrets = line.trim_start_matches(['"', '\'']).starts_with("secrets");
        }
        if is_in_secrets {
            names.extend(words(line));
        }
        for after in line.split("${").skip(1) {
            names.extend(words(after).take(1));
        }
    }
    names.into_iter().collect()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| is_variable_name(word))
        .map(str::to_owned)
}

/// Lists the servers that have to be asked for their tools. `known` are the problems that are known already.
fn list_unlocked(
    server_tools: &ServerTools<'_>,
    document: &Arc<ToolsDocument>,
    servers: &[Arc<ServerConfig>],
    known: &[FileProblem],
) -> Vec<Arc<UnlockedServer>> {
    let unlocked: Vec<_> = server_tools.unlocked_servers().collect();
    if unlocked.is_empty() {
        return Vec::new();
    }
    let resolver = Arc::new(ListingResolver {
        document: Arc::clone(document),
        lock: Mutex::new(server_tools.lock().cloned().unwrap_or_default()),
        known: known
            .iter()
            .map(|problem| problem.message.clone())
            .collect(),
    });
    unlocked
        .into_iter()
        .filter_map(|(name, file)| {
            let prefix = model_name(name, &file.prefix, "");
            let server = servers.iter().find(|server| server.name == name)?;
            let resolver = Arc::clone(&resolver) as Arc<dyn ToolResolver>;
            Some(Arc::new(UnlockedServer::new(
                Arc::clone(server),
                prefix,
                resolver,
            )))
        })
        .collect()
}

/// Resolves a tools file again, as if tools.lock had what a server announces.
#[derive(Debug)]
struct ListingResolver {
    document: Arc<ToolsDocument>,
    /// tools.lock, and what servers have announced.
    lock: Mutex<ToolsLock>,
    /// The problems that the file has without what servers announce.
    known: HashSet<String>,
}

impl ToolResolver for ListingResolver {
    fn resolve_tools(
        &self,
        server: &Arc<ServerConfig>,
        lock: &ServerLock,
    ) -> Result<(Vec<Arc<Tool>>, Vec<String>), String> {
        let mut with_server = self.lock.lock().clone();
        with_server
            .servers
            .insert(server.name.clone(), lock.clone());
        let lock = LockUse::Announced(&with_server);
        let resolved = self.document.resolve(lock, Vec::new());
        let messages = |severity: Severity| -> Vec<String> {
            resolved
                .problems
                .iter()
                .filter(|problem| problem.severity == severity)
                .map(|problem| problem.message.clone())
                .filter(|message| !self.known.contains(message))
                .collect()
        };
        let Some(config) = resolved.tools.as_ref().filter(|_| !resolved.has_errors) else {
            return Err(messages(Severity::Error).join("; "));
        };
        let is_own = |tool: &&Arc<Tool>| matches!(&tool.backing, Some(Backing::Mcp(mcp)) if mcp.server.name == server.name);
        let own = config
            .tools
            .iter()
            .filter(is_own)
            .map(|tool| on_server(tool, server));
        Ok((own.collect(), messages(Severity::Warning)))
    }

    fn keep_lock(&self, server: &str, lock: &ServerLock) {
        self.lock
            .lock()
            .servers
            .insert(server.to_owned(), lock.clone());
    }
}

/// Returns a tool whose calls go to this server, so that listing and calling its tools share one connection.
fn on_server(tool: &Arc<Tool>, server: &Arc<ServerConfig>) -> Arc<Tool> {
    let mut tool = Tool::clone(tool);
    if let Some(Backing::Mcp(mcp)) = &mut tool.backing {
        mcp.server = Arc::clone(server);
    }
    Arc::new(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_a_file_that_is_broken() {
        let text = "version: 1\nsecrets:\n  - A_TOKEN # of a\n- B_TOKEN\ntools: {a: {x: [\"${C_TOKEN:-none}\", OTHER\n";
        let names = guess_secret_names(text);
        for name in ["A_TOKEN", "B_TOKEN", "C_TOKEN"] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        assert!(!names.iter().any(|name| name == "OTHER"), "{names:?}");
        assert!(guess_secret_names("secrets: [D_TOKEN").contains(&"D_TOKEN".to_owned()));
    }
}
