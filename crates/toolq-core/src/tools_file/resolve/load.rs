//! Parses the text of tools.yaml and resolves it, or reports every problem in it at once, each with its position and a
//! hint.
//!
//! Checks the structure first, then the schemas, then what the settings mean together. Whether programs, directories
//! and variables exist on this machine is checked in `lints::environment`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tools_file::keys::{IncludedFile, ToolsFile};
use crate::tools_file::resolve::document::{ResolvedDocument, ToolsDocument};
use crate::tools_file::resolve::host_tools::HostToolDeclarations;
use crate::tools_file::resolve::regular_file::read_regular_file;
use crate::tools_file::secret_names::guess_secret_names;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::yaml::{YamlNode, parse_yaml};
use crate::tools_lock::LockUse;
use crate::types::{EnvFile, FileProblem, Span, ToolsConfig};

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

// Reads the files that `include` names, and adds what they declare to what tools.yaml itself does.
//
// All the rest works on the whole, with spans that lead to the right file. An included file doesn't include others.

/// Maximum size of an included file.
const MAX_FILE_BYTES: u64 = 64 << 20;

const PLACE_HINT: &str = "name a file in the directory of tools.yaml, or below it";

/// Adds the included files to `file`, `tree` and `sources`. Returns every problem with them.
fn include_files(
    file: &mut ToolsFile,
    tree: &mut YamlNode,
    sources: &mut SourceMap,
    dir: &Path,
) -> Vec<FileProblem> {
    let names: Vec<Spanned<String>> = file.include.items().cloned().collect();
    let mut problems = Vec::new();
    let mut seen: HashMap<PathBuf, Span> = HashMap::new();
    for name in names {
        match find_file(&name, dir) {
            Ok(path) if seen.insert(path.clone(), name.span).is_some() => {
                let message = format!("{} is included twice", path.display());
                problems.push(
                    FileProblem::error(name.span, message, "").with_hint("remove one of them"),
                );
            }
            Ok(path) => match read_regular_file(&dir.join(&path), MAX_FILE_BYTES) {
                Ok(text) => problems.extend(add_file(file, tree, sources, (path, &text))),
                Err(why) => {
                    let message = format!("{} can't be read: {why}", name.value);
                    problems.push(FileProblem::error(name.span, message, "").with_hint(PLACE_HINT));
                }
            },
            Err(why) => {
                let message = format!("{} can't be included: {why}", name.value);
                problems.push(FileProblem::error(name.span, message, "").with_hint(PLACE_HINT));
            }
        }
    }
    problems
}

/// Returns the path of a file below `dir`, with symlinks resolved.
fn find_file(name: &Spanned<String>, dir: &Path) -> Result<PathBuf, String> {
    let dir = dir.canonicalize().map_err(|error| error.to_string())?;
    let file = dir.join(&name.value).canonicalize();
    let file = file.map_err(|error| error.to_string())?;
    match file.strip_prefix(&dir) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => Err("it isn't below the directory of tools.yaml".to_owned()),
    }
}

/// Adds one file. Its text becomes a part of `sources` in any case.
fn add_file(
    file: &mut ToolsFile,
    tree: &mut YamlNode,
    sources: &mut SourceMap,
    (path, text): (PathBuf, &str),
) -> Vec<FileProblem> {
    let name = path.display().to_string();
    let offset = sources.append(path, text);
    let mut included_tree = match parse_yaml(text) {
        Ok(tree) => tree,
        Err(mut problems) => {
            for problem in &mut problems {
                problem.span.start += offset;
            }
            return problems;
        }
    };
    included_tree.shift_spans(offset);
    let (included, mut problems) = IncludedFile::read(&included_tree, &name);
    let Field::Valid(included) = included else {
        return problems;
    };
    let included = included.value;
    check_version(&included.version, &mut problems);
    if included.declares_nothing() {
        let span = Span {
            start: offset,
            len: 0,
        };
        let problem = FileProblem::error(span, format!("{name} declares nothing"), "");
        problems.push(problem.with_hint("an included file has `tools`, `rules` or `servers`"));
    }
    merge_tables(
        "tool",
        &mut file.tools,
        included.tools,
        sources,
        &mut problems,
    );
    merge_tables(
        "server",
        &mut file.servers,
        included.servers,
        sources,
        &mut problems,
    );
    merge_lists(&mut file.rules, included.rules);
    tree.append_entries(included_tree, &["tools", "servers", "rules"]);
    problems
}

fn check_version(field: &Field<u32>, problems: &mut Vec<FileProblem>) {
    if let Some(version) = field.spanned().filter(|version| version.value != 1) {
        let message = format!("version {} of tools.yaml isn't supported", version.value);
        let problem = FileProblem::error(version.span, message, "");
        problems.push(problem.with_hint("this toolq supports version 1"));
    }
}

/// Moves all entries of `more` to `table`. An entry whose name is taken is an error that names both places.
fn merge_tables<T>(
    what: &str,
    table: &mut Field<SpannedTable<T>>,
    more: Field<SpannedTable<T>>,
    sources: &SourceMap,
    problems: &mut Vec<FileProblem>,
) {
    match (&mut *table, more) {
        (Field::Missing, more) => *table = more,
        (Field::Valid(table), Field::Valid(more)) => {
            for (name, entry) in more.value.0 {
                let taken = table.value.0.iter().find(|(known, _)| *known == name);
                match (taken, entry.spanned()) {
                    (Some((_, first)), Some(second)) => {
                        let message = format!("the {what} `{name}` is declared twice");
                        let problem =
                            FileProblem::error(second.key_span, message, "declared again");
                        problems.push(problem.with_hint(first_place(first, sources)));
                    }
                    (Some(_), None) => {}
                    (None, _) => table.value.0.push((name, entry)),
                }
            }
        }
        _ => {}
    }
}

fn first_place<T>(first: &Field<T>, sources: &SourceMap) -> String {
    let Some(first) = first.spanned() else {
        return "remove one of them".to_owned();
    };
    let place = sources.locate(first.key_span);
    let line = place.line();
    match place.included {
        Some(path) => format!("the first one is on line {line} of {}", path.display()),
        None => format!("the first one is on line {line} of the file that includes this one"),
    }
}

fn merge_lists<T>(list: &mut Field<Vec<T>>, more: Field<Vec<T>>) {
    match (&mut *list, more) {
        (Field::Missing, more) => *list = more,
        (Field::Valid(list), Field::Valid(more)) => list.value.extend(more.value),
        _ => {}
    }
}
