//! The tools that a host process announces: a part of the tools file that comes by a pipe, as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::json::JsonText;
use crate::tools_file::keys::{IncludedFile, ToolFile, ToolsFile};
use crate::tools_file::resolve::load::ParsedToolsFile;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::tools_file::write::exact_json::ExactJson;
use crate::tools_file::yaml::{YamlNode, parse_yaml};
use crate::types::{FileProblem, Severity};

/// Maximum size of the tools, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The tools of a host process.
#[derive(Debug, Clone)]
pub struct HostToolDeclarations {
    /// A JSON object with the key `tools`, a value on each line.
    text: String,
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

#[derive(Serialize)]
struct HostDocument<'a> {
    tools: ExactJson<'a>,
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
        let document = HostDocument {
            tools: ExactJson(json),
        };
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
    pub(super) fn add_to(
        &self,
        file: &mut ToolsFile,
        tree: &mut YamlNode,
        sources: &mut SourceMap,
    ) -> Vec<FileProblem> {
        let offset = sources.append_host_tools(&self.text);
        let mut host_tree = match parse_yaml(&self.text) {
            Ok(tree) => tree,
            Err(mut problems) => {
                for problem in &mut problems {
                    problem.span.start += offset;
                    // It may name a line, which the host process doesn't have.
                    problem.hint = None;
                }
                return problems;
            }
        };
        host_tree.shift_spans(offset);
        let (announced, mut problems) = IncludedFile::read(&host_tree, "the tools of the host");
        let Field::Valid(announced) = announced else {
            return problems;
        };
        let announced = announced.value;
        add_tools(&mut file.tools, announced.tools, sources, &mut problems);
        tree.append_entries(host_tree, &["tools"]);
        problems
    }

    /// Returns the errors in these tools, if `loaded` was parsed with them. Others are in the file.
    pub fn find_errors(&self, loaded: &ParsedToolsFile) -> Vec<HostToolProblem> {
        let tree = parse_yaml(&self.text).ok();
        let errors = loaded.problems.iter().filter(|problem| {
            problem.severity == Severity::Error && loaded.sources.is_from_host(problem.span)
        });
        let located = errors.map(|problem| {
            let offset = loaded.sources.locate(problem.span).span.start;
            let path = tree.as_ref().map(|tree| tree.path_at(offset));
            HostToolProblem {
                // The first key is `tools`.
                at: path.unwrap_or_default().into_iter().skip(1).collect(),
                message: problem.message.clone(),
                hint: problem.hint.clone(),
            }
        });
        located.collect()
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

/// Moves the tools of the host to those of the file. One whose name is taken is an error.
fn add_tools(
    known: &mut Field<SpannedTable<ToolFile>>,
    announced: Field<SpannedTable<ToolFile>>,
    sources: &SourceMap,
    problems: &mut Vec<FileProblem>,
) {
    let Field::Valid(announced) = announced else {
        return;
    };
    let Field::Valid(known) = known else {
        if matches!(known, Field::Missing) {
            *known = Field::Valid(announced);
        }
        return;
    };
    for (name, tool) in announced.value.0 {
        let mut taken = known.value.0.iter();
        let taken = taken.find(|(other, _)| *other == name);
        let Some((_, first)) = taken else {
            known.value.0.push((name, tool));
            continue;
        };
        if let (Some(first), Some(second)) = (first.spanned(), tool.spanned()) {
            let place = sources.locate(first.key_span);
            let file = place
                .included
                .map_or("tools.yaml".to_owned(), |path| path.display().to_string());
            let message = format!("the tool `{name}` is declared in {file}, too");
            let hint = format!(
                "rename one of them; the other one is on line {} there",
                place.line()
            );
            problems.push(FileProblem::error(second.key_span, message, "").with_hint(hint));
        }
    }
}

#[cfg(test)]
mod tests;
