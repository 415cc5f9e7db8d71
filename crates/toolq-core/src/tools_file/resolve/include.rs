//! Reads the files that `include` names, and adds what they declare to what tools.yaml itself does.
//!
//! All the rest works on the whole, with spans that lead to the right file. An included file doesn't include others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::tools_file::keys::{IncludedFile, ToolsFile};
use crate::tools_file::resolve::regular_file::read_regular_file;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::yaml::{YamlNode, parse_yaml};
use crate::types::{FileProblem, Span};

/// Maximum size of an included file.
const MAX_FILE_BYTES: u64 = 64 << 20;

const PLACE_HINT: &str = "name a file in the directory of tools.yaml, or below it";

/// Adds the included files to `file`, `tree` and `sources`. Returns every problem with them.
pub(crate) fn include_files(
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
