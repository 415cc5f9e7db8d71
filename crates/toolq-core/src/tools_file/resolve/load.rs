//! Parses the text of tools.yaml and resolves it, or reports every problem in it at once, each with its position and a
//! hint.
//!
//! Checks the structure first, then the schemas, then what the settings mean together. Whether programs, directories
//! and variables exist on this machine is checked in `lints::environment`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tools_file::keys::ToolsFile;
use crate::tools_file::resolve::document::{ResolvedDocument, ToolsDocument};
use crate::tools_file::resolve::host_tools::HostToolDeclarations;
use crate::tools_file::resolve::include::include_files;
use crate::tools_file::secret_names::guess_secret_names;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::yaml::{YamlNode, parse_yaml};
use crate::tools_lock::LockUse;
use crate::types::{EnvFile, FileProblem, ToolsConfig};

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
    let other_files = tools.as_ref().map(|tools| tools.own_files.clone());
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
        other_files: other_files.unwrap_or_default(),
        tree: Some(tree),
        sources,
    }
}
