//! Adds what other files and the host process declare to what tools.yaml itself does.
//!
//! All the rest works on the whole, with spans that lead to the right file. An included file doesn't include others.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::JsonText;
use crate::tools_file::context::SourceMap;
use crate::tools_file::key_hints::find_key_hint;
use crate::tools_file::spanned::deserializer::deserialize_node;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::env::read_regular_file;
use crate::tools_file::tables::file::{ToolsFile, version_problem};
use crate::tools_file::tables::rules::RuleFile;
use crate::tools_file::tables::server::ServerFile;
use crate::tools_file::tables::tool::ToolFile;
use crate::tools_file::yaml::YamlNode;
use crate::tools_file::yaml::parse::parse_yaml;
use crate::types::{FileProblem, Span};

/// What a file that another one includes may have. Editors use the schema of [`ToolsFile`] for it, too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct IncludedFile {
    pub version: Field<u32>,
    pub rules: Field<Vec<Field<RuleFile>>>,
    pub servers: Field<SpannedTable<ServerFile>>,
    pub tools: Field<SpannedTable<ToolFile>>,
}

impl IncludedFile {
    /// Deserializes the file `name`, and returns every problem with its structure.
    pub fn read(tree: &YamlNode, name: &str) -> (Field<Self>, Vec<FileProblem>) {
        deserialize_node(tree, name, find_included_key_hint)
    }
}

/// Like [`find_key_hint`], for a file that another one includes.
fn find_included_key_hint(key: &str, fields: &[&str]) -> Option<&'static str> {
    let is_top_level = fields.contains(&"servers");
    match key {
        "include" if is_top_level => Some(
            "an included file doesn't include others: name them all in the file that includes this one",
        ),
        "concurrency" | "root" | "secrets" | "builtins" | "defaults" | "messages" | "normalize"
        | "prices" | "env_file"
            if is_top_level =>
        {
            Some("write it in the file that includes this one, which has it for all tools")
        }
        _ => find_key_hint(key, fields),
    }
}

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
    let mut seen = HashSet::new();
    for name in names {
        let refuse = |message: String, hint: &str| {
            vec![FileProblem::error(name.span, message, "").with_hint(hint)]
        };
        problems.extend(match find_file(&name.value, dir) {
            Err(why) => refuse(
                format!("{} can't be included: {why}", name.value),
                PLACE_HINT,
            ),
            Ok(path) if !seen.insert(path.clone()) => refuse(
                format!("{} is included twice", path.display()),
                "remove one of them",
            ),
            Ok(path) => match read_regular_file(&dir.join(&path), MAX_FILE_BYTES) {
                Ok(text) => add_file(file, tree, sources, (path, &text)),
                Err(why) => refuse(format!("{} can't be read: {why}", name.value), PLACE_HINT),
            },
        });
    }
    problems
}

/// Returns the path of a file below `dir`, with symlinks resolved.
fn find_file(name: &str, dir: &Path) -> Result<PathBuf, String> {
    let resolve = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    let dir = resolve(dir)?;
    match resolve(&dir.join(name))?.strip_prefix(&dir) {
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
    let included_tree = match parse_at(text, offset) {
        Ok(tree) => tree,
        Err(problems) => return problems,
    };
    let (included, mut problems) = IncludedFile::read(&included_tree, &name);
    let Field::Valid(included) = included else {
        return problems;
    };
    let included = included.value;
    problems.extend(version_problem(&included.version));
    if included.rules.is_missing() && included.servers.is_missing() && included.tools.is_missing() {
        let start = Span {
            start: offset,
            len: 0,
        };
        let problem = FileProblem::error(start, format!("{name} declares nothing"), "");
        problems.push(problem.with_hint("an included file has `tools`, `rules` or `servers`"));
    }
    problems.extend(merge_tables(
        &mut file.tools,
        included.tools,
        |name, first, second| {
            Some(declared_twice(
                "tool",
                name,
                sources,
                (first.key_span(), second),
            ))
        },
    ));
    problems.extend(merge_tables(
        &mut file.servers,
        included.servers,
        |name, first, second| {
            Some(declared_twice(
                "server",
                name,
                sources,
                (first.key_span(), second),
            ))
        },
    ));
    merge_lists(&mut file.rules, included.rules);
    tree.append_entries(included_tree, &["tools", "servers", "rules"]);
    problems
}

/// Parses a text that begins at `offset` in all texts.
fn parse_at(text: &str, offset: usize) -> Result<YamlNode, Vec<FileProblem>> {
    match parse_yaml(text) {
        Ok(mut tree) => {
            tree.shift_spans(offset);
            Ok(tree)
        }
        Err(mut problems) => {
            for problem in &mut problems {
                problem.span.start += offset;
            }
            Err(problems)
        }
    }
}

/// Moves all entries of `more` to `table`. An entry whose name is taken is left out; `report` says why.
fn merge_tables<T>(
    table: &mut Field<SpannedTable<T>>,
    more: Field<SpannedTable<T>>,
    report: impl Fn(&str, &Field<T>, &Spanned<T>) -> Option<FileProblem>,
) -> Vec<FileProblem> {
    let mut problems = Vec::new();
    match (&mut *table, more) {
        (Field::Missing, more) => *table = more,
        (Field::Valid(table), Field::Valid(more)) => {
            for (name, entry) in more.value.0 {
                match table.value.0.iter().find(|(known, _)| *known == name) {
                    None => table.value.0.push((name, entry)),
                    Some((_, first)) => {
                        let second = entry.spanned();
                        problems.extend(second.and_then(|second| report(&name, first, second)));
                    }
                }
            }
        }
        _ => {}
    }
    problems
}

fn declared_twice<T>(
    what: &str,
    name: &str,
    sources: &SourceMap,
    (first, second): (Option<Span>, &Spanned<T>),
) -> FileProblem {
    let hint = match first.map(|first| sources.locate(first)) {
        None => "remove one of them".to_owned(),
        Some(place) => {
            let file = place
                .included
                .map_or("the file that includes this one".to_owned(), |path| {
                    path.display().to_string()
                });
            format!("the first one is on line {} of {file}", place.line())
        }
    };
    let message = format!("the {what} `{name}` is declared twice");
    FileProblem::error(second.key_span, message, "declared again").with_hint(hint)
}

fn merge_lists<T>(list: &mut Field<Vec<T>>, more: Field<Vec<T>>) {
    match (&mut *list, more) {
        (Field::Missing, more) => *list = more,
        (Field::Valid(list), Field::Valid(more)) => list.value.extend(more.value),
        _ => {}
    }
}

/// Maximum size of the tools, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The tools of a host process.
#[derive(Debug, Clone)]
pub struct HostToolDeclarations {
    /// A JSON object with the key `tools`, a value on each line.
    pub(crate) text: String,
}

/// What is wrong with a tool of the host process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostToolProblem {
    /// The keys that lead to it, from the name of the tool on. Empty if the whole is wrong.
    pub at: Vec<String>,
    /// What is wrong, in one sentence without a period.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl HostToolDeclarations {
    /// Takes the tools of a host process, an object whose keys are their names.
    ///
    /// # Errors
    /// It isn't an object, or can't be read.
    pub fn new(tools: &RawValue) -> Result<Self, HostToolProblem> {
        let problem = |message: String| HostToolProblem {
            at: Vec::new(),
            message,
            hint: None,
        };
        let json = JsonText::from(tools);
        if !tools.get().starts_with('{') {
            let message = format!(
                "`tools` is {}, not an object with the tools by name",
                json.kind()
            );
            return Err(problem(message));
        }
        if tools.get().len() > MAX_BYTES {
            let message = format!("`tools` has more than {} MiB", MAX_BYTES >> 20);
            return Err(problem(message));
        }
        let document = BTreeMap::from([("tools", ExactJson(json))]);
        // Each value on a line of its own: what reads YAML looks at lines.
        match serde_json::to_string_pretty(&document) {
            Ok(text) => Ok(Self {
                text: escape_for_yaml(&text),
            }),
            // Nothing else that is JSON can't be written as JSON.
            Err(_) => Err(problem(
                "a text in `tools` has half of a surrogate pair, which is no character".to_owned(),
            )),
        }
    }

    /// Adds the tools to those of the file. Returns every problem with them.
    pub(crate) fn add_to(
        &self,
        file: &mut ToolsFile,
        tree: &mut YamlNode,
        sources: &mut SourceMap,
    ) -> Vec<FileProblem> {
        let offset = sources.append_host_tools(&self.text);
        let host_tree = match parse_at(&self.text, offset) {
            Ok(tree) => tree,
            Err(mut problems) => {
                // It may name a line, which the host process doesn't have.
                for problem in &mut problems {
                    problem.hint = None;
                }
                return problems;
            }
        };
        let (announced, mut problems) = IncludedFile::read(&host_tree, "the tools of the host");
        let Field::Valid(announced) = announced else {
            return problems;
        };
        problems.extend(merge_tables(
            &mut file.tools,
            announced.value.tools,
            |name, first, second| {
                let place = sources.locate(first.key_span()?);
                let file = place.included.map(|path| path.display().to_string());
                let file = file.unwrap_or("tools.yaml".to_owned());
                let message = format!("the tool `{name}` is declared in {file}, too");
                let hint = format!(
                    "rename one of them; the other one is on line {} there",
                    place.line()
                );
                Some(FileProblem::error(second.key_span, message, "").with_hint(hint))
            },
        ));
        tree.append_entries(host_tree, &["tools"]);
        problems
    }
}

/// Escapes characters that JSON allows, but YAML doesn't. They only occur in strings.
fn escape_for_yaml(json: &str) -> String {
    let is_refused = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_refused(c) {
            // Writing to a string can't fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A JSON value whose integers of up to 128 bits keep all of their digits.
pub(crate) struct ExactJson<'a>(pub(crate) JsonText<'a>);

impl Serialize for ExactJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.0;
        if let Some(object) = json.object() {
            let members = object.members().iter();
            return serializer.collect_map(members.map(|(key, value)| (key, Self(*value))));
        }
        if let Some(elements) = json.elements() {
            return serializer.collect_seq(elements.into_iter().map(ExactJson));
        }
        if let Some(text) = json.to_text() {
            return serializer.serialize_str(&text);
        }
        match json.get() {
            "null" => serializer.serialize_unit(),
            "true" => serializer.serialize_bool(true),
            "false" => serializer.serialize_bool(false),
            number => serialize_number(number, serializer),
        }
    }
}

fn serialize_number<S: Serializer>(number: &str, serializer: S) -> Result<S::Ok, S::Error> {
    // JSON has a negative zero, which only a float keeps.
    if number != "-0" {
        if let Ok(integer) = number.parse::<i128>() {
            return serializer.serialize_i128(integer);
        }
        if let Ok(integer) = number.parse::<u128>() {
            return serializer.serialize_u128(integer);
        }
    }
    let float: f64 = number.parse().map_err(S::Error::custom)?;
    serializer.serialize_f64(float)
}
