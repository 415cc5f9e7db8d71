//! What is passed along while a file, or one of its tools, is resolved: the texts that it consists of, the problems in them, and
//! what checks need. A [`Span`] is a range in all texts, one after another, so that a problem has one position wherever it is.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::json_schema::{find_invalid_defaults, find_schema_errors, find_unknown_keywords};
use crate::text::line_starts;
use crate::tools_file::spanned::Spanned;
use crate::tools_file::yaml::YamlNode;
use crate::types::{CommandWrapper, FileProblem, Sandbox, Severity, Span, Template};

/// The name that replaces a path for the tools of the host process.
const HOST_NAME: &str = "the tools of the host";

/// The texts of a tools.yaml and its included files.
#[derive(Debug, Clone)]
pub struct SourceMap {
    /// The directory of tools.yaml.
    dir: PathBuf,
    text: String,
    files: Vec<SourceFile>,
    /// Where the tools of the host process begin, if it has announced some. They come last.
    host_start: Option<usize>,
}

/// One of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SourceFile {
    /// Below the directory of tools.yaml; `None` for tools.yaml itself.
    name: Option<PathBuf>,
    start: usize,
}

/// A position in one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition<'s> {
    /// The path below the directory of tools.yaml, with symlinks resolved; `None` for tools.yaml itself.
    pub included: Option<&'s Path>,
    /// The text of the file.
    pub text: &'s str,
    /// The range in this text.
    pub span: Span,
}

impl SourceMap {
    /// Starts with the text of tools.yaml.
    pub(crate) fn new(text: &str, dir: &Path) -> Self {
        let main = SourceFile {
            name: None,
            start: 0,
        };
        Self {
            dir: dir.to_owned(),
            text: text.to_owned(),
            files: vec![main],
            host_start: None,
        }
    }

    /// Appends an included file. Returns the offset at which its text begins.
    pub(crate) fn append(&mut self, name: PathBuf, text: &str) -> usize {
        // A character of its own, so that no span at the end of a file is also at the beginning of the next.
        self.text.push('\n');
        let start = self.text.len();
        self.text.push_str(text);
        self.files.push(SourceFile {
            name: Some(name),
            start,
        });
        start
    }

    /// Appends the tools of the host process, after all files. Returns the offset at which the text begins.
    pub(crate) fn append_host_tools(&mut self, text: &str) -> usize {
        let start = self.append(PathBuf::from(HOST_NAME), text);
        self.host_start = Some(start);
        start
    }

    /// Returns whether a span is in the tools of the host process.
    pub fn is_from_host(&self, span: Span) -> bool {
        self.host_start.is_some_and(|start| span.start >= start)
    }

    /// Returns the directory of tools.yaml.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns all texts, one after another.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of tools.yaml itself.
    pub(crate) fn main_text(&self) -> &str {
        self.text_of(0)
    }

    /// Returns the included files: their paths below the directory of tools.yaml, and their texts.
    pub fn included(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files
            .iter()
            .enumerate()
            .filter(|(_, file)| Some(file.start) != self.host_start)
            .filter_map(|(index, file)| Some((file.name.as_deref()?, self.text_of(index))))
    }

    /// Returns the tools of the host process, if it has announced some.
    pub(crate) fn host_text(&self) -> Option<&str> {
        self.host_start.map(|start| &self.text[start..])
    }

    /// Finds the file in which a span begins.
    pub fn locate(&self, span: Span) -> SourcePosition<'_> {
        let index = self
            .files
            .partition_point(|file| file.start <= span.start)
            .saturating_sub(1);
        let file = &self.files[index];
        SourcePosition {
            included: file.name.as_deref(),
            text: self.text_of(index),
            span: Span {
                start: span.start - file.start,
                len: span.len,
            },
        }
    }

    /// Returns the directory of the file in which a span begins, below that of tools.yaml. Empty for the same directory.
    pub(crate) fn dir_of(&self, span: Span) -> &Path {
        self.locate(span)
            .included
            .and_then(Path::parent)
            .unwrap_or(Path::new(""))
    }

    fn text_of(&self, index: usize) -> &str {
        let next = self.files.get(index + 1);
        let end = next.map_or(self.text.len(), |next| next.start - 1);
        &self.text[self.files[index].start..end]
    }
}

impl SourcePosition<'_> {
    /// Returns the number of the line, counted from 1.
    pub fn line(&self) -> usize {
        line_starts(self.text, 0..self.span.start).count() + 1
    }
}

/// Where a problem is: a span, or a span with a label.
#[derive(derive_more::From)]
pub(crate) struct Place<'l> {
    span: Span,
    label: &'l str,
}

impl From<Span> for Place<'_> {
    fn from(span: Span) -> Self {
        Self { span, label: "" }
    }
}

/// The problems of a tools.yaml and its included files.
pub(crate) struct Diagnostics {
    sources: Arc<SourceMap>,
    problems: Vec<FileProblem>,
}

impl Diagnostics {
    pub(crate) fn new(sources: Arc<SourceMap>, problems: Vec<FileProblem>) -> Self {
        Self { sources, problems }
    }

    /// Returns the texts that the problems are in.
    pub(crate) fn sources(&self) -> &SourceMap {
        &self.sources
    }

    pub(crate) fn push(&mut self, problem: FileProblem) {
        self.problems.push(problem);
    }

    /// Adds an error with a hint.
    pub(crate) fn error<'l>(
        &mut self,
        place: impl Into<Place<'l>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let Place { span, label } = place.into();
        self.push(FileProblem::error(span, message, label).with_hint(hint));
    }

    /// Adds a warning with a hint.
    pub(crate) fn warning<'l>(
        &mut self,
        place: impl Into<Place<'l>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let Place { span, label } = place.into();
        self.push(FileProblem::warning(span, message, label).with_hint(hint));
    }

    /// Returns the problems so far.
    pub(crate) fn problems(&self) -> &[FileProblem] {
        &self.problems
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// Returns all problems in the order of the file, without warnings at the span of an error.
    pub(crate) fn into_sorted(mut self) -> Vec<FileProblem> {
        let is_error = |problem: &&FileProblem| problem.severity == Severity::Error;
        let error_spans: HashSet<Span> = self
            .problems
            .iter()
            .filter(is_error)
            .map(|problem| problem.span)
            .collect();
        self.problems
            .retain(|problem| is_error(&problem) || !error_spans.contains(&problem.span));
        self.problems.sort_by_key(|problem| problem.span);
        self.problems
    }

    /// Returns the span in the file of `range`, a range of bytes in the value. Escapes and folding make the two differ,
    /// so the text of the range is searched for in the file. Falls back to the span of the whole value.
    pub(crate) fn span_within<T: AsRef<str>>(
        &self,
        spanned: &Spanned<T>,
        range: &Range<usize>,
    ) -> Span {
        let value = spanned.value.as_ref();
        let (Some(source), Some(needle)) = (self.source_at(spanned.span), value.get(range.clone()))
        else {
            return spanned.span;
        };
        let before = value[..range.start].matches(needle).count();
        match source.match_indices(needle).nth(before) {
            Some((offset, _)) => Span {
                start: spanned.span.start + offset,
                len: needle.len(),
            },
            None => spanned.span,
        }
    }

    fn source_at(&self, span: Span) -> Option<&str> {
        self.sources.text().get(span.start..span.start + span.len)
    }
}

/// What the checks of a file need.
pub(crate) struct CheckContext<'c> {
    pub(crate) tree: &'c YamlNode,
    pub(crate) dir: &'c Path,
    /// The files that hold schemas.
    pub(crate) schema_files: BTreeSet<PathBuf>,
    pub(crate) diagnostics: &'c mut Diagnostics,
}

/// Where a schema is: at these keys, or in the file that they name.
#[derive(Clone, Copy)]
pub(crate) struct SchemaPlace<'k> {
    pub(crate) keys: &'k [&'k str],
    pub(crate) file: Option<&'k str>,
}

impl SchemaPlace<'_> {
    /// Returns a message about the value at `pointer`. In another file, only words can say where that is.
    fn message(&self, pointer: &str, message: &str) -> String {
        match self.file {
            None => message.to_owned(),
            Some(file) if pointer.is_empty() => format!("in {file}: {message}"),
            Some(file) => format!("in {file} at {pointer}: {message}"),
        }
    }
}

impl CheckContext<'_> {
    /// Reports every error in the schema. Returns whether it is valid.
    pub(crate) fn check_schema(&mut self, schema: &Value, place: SchemaPlace<'_>) -> bool {
        let errors = find_schema_errors(schema);
        let is_valid = errors.is_empty();
        for error in errors {
            let span = self.tree.span_at(place.keys, &error.pointer);
            let message = place.message(&error.pointer, &error.message);
            let problem = FileProblem::error(span, message, "in this schema");
            self.diagnostics.push(match error.hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
        is_valid
    }

    /// Warns about defaults that their own schemas reject.
    pub(crate) fn warn_about_invalid_defaults(&mut self, schema: &Value, place: SchemaPlace<'_>) {
        for (pointer, problems) in find_invalid_defaults(schema) {
            let problems = problems.iter().map(|problem| match problem.path.as_str() {
                "" => problem.message.clone(),
                path => format!("{path} {}", problem.message),
            });
            let problems = problems.collect::<Vec<_>>().join("; ");
            let pointer = pointer + "/default";
            let message = format!("the default violates its schema: {problems}");
            self.diagnostics.warning(
                (self.tree.span_at(place.keys, &pointer), "not filled in where the value is missing"),
                place.message(&pointer, &message),
                "a call without this value runs without the default, or is refused if the value is required; change the \
                 default",
            );
        }
    }

    /// Warns about keys in the schema that are almost keywords. JSON Schema treats all other unknown keys as
    /// annotations, and vendors use many.
    pub(crate) fn warn_about_misspelled_keywords(
        &mut self,
        schema: &Value,
        place: SchemaPlace<'_>,
    ) {
        for unknown in find_unknown_keywords(schema) {
            if let Some(suggestion) = unknown.suggestion {
                let message = format!(
                    "`{}` isn't a JSON Schema keyword, so it checks nothing",
                    unknown.key
                );
                self.diagnostics.warning(
                    (
                        self.tree.key_span_at(place.keys, &unknown.pointer),
                        "ignored",
                    ),
                    place.message(&unknown.pointer, &message),
                    format!("did you mean `{suggestion}`?"),
                );
            }
        }
    }
}

/// What resolving one tool, or one server, needs.
pub(crate) struct ToolContext<'c> {
    pub(crate) schema: &'c Value,
    /// Why there is no input, if nothing can depend on one.
    pub(crate) why_no_input: Option<&'static str>,
    /// The tool's `paths`.
    pub(crate) paths: Vec<Vec<String>>,
    /// Whether the tool says `paths: []`: no input of it needs to stay inside the root.
    pub(crate) has_no_paths: bool,
    pub(crate) programs: &'c ProgramDefaults,
    /// What the programs can reach.
    pub(crate) sandbox: Option<Sandbox>,
    /// What runs the programs.
    pub(crate) wrapper: Option<CommandWrapper>,
    pub(crate) diagnostics: &'c mut Diagnostics,
}

impl<'c> ToolContext<'c> {
    pub(crate) fn new(
        schema: &'c Value,
        programs: &'c ProgramDefaults,
        diagnostics: &'c mut Diagnostics,
    ) -> Self {
        Self {
            schema,
            why_no_input: None,
            paths: Vec::new(),
            has_no_paths: false,
            programs,
            sandbox: None,
            wrapper: None,
            diagnostics,
        }
    }
}

/// What `defaults` says about every program: those of commands, servers, `describe` and `probe`.
#[derive(Debug)]
pub(crate) struct ProgramDefaults {
    /// The root of the file, absolute.
    pub(crate) root: PathBuf,
    /// The working directory, absolute.
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) wrapper: Option<CommandWrapper>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_in_the_file_in_which_it_begins() {
        let mut sources = SourceMap::new("a: 1\nb: 2", Path::new("/"));
        let start = sources.append(PathBuf::from("sub/more.yaml"), "c: 3\nd: 4\n");
        let last = sources.append(PathBuf::from("empty.yaml"), "");
        let at = |start| sources.locate(Span { start, len: 1 });
        assert_eq!((at(0).included, at(0).line()), (None, 1));
        assert_eq!((at(8).included, at(8).line()), (None, 2));
        assert_eq!((at(8).text, at(9).text), ("a: 1\nb: 2", "a: 1\nb: 2"));
        let more = at(start + 5);
        assert_eq!(more.included, Some(Path::new("sub/more.yaml")));
        assert_eq!((more.line(), more.span.start), (2, 5));
        assert_eq!(at(last).included, Some(Path::new("empty.yaml")));
        let dir = |start| sources.dir_of(Span { start, len: 0 });
        assert_eq!(dir(start), Path::new("sub"));
        assert_eq!((dir(0), dir(last)), (Path::new(""), Path::new("")));
    }
}
