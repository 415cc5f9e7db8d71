//! Warns about what is declared and has no effect (tools without a backing, secrets that mask nothing, agents in a circle)
//! and about likely mistakes in templates. These aren't errors, because plans and replays work regardless.

use crate::os::Environment;
use crate::template::{TemplateMark, VariableMode, foreign_placeholder_path};
use crate::text::{MAX_NAMED_TOOLS, list_some};
use crate::tools_file::argv::programs::base_name;
use crate::tools_file::argv::roles::ArgRole;
use crate::tools_file::context::ToolContext;
use crate::tools_file::input_values::{accepts_only_plain_text, find_listed};
use crate::tools_file::spanned::Spanned;
use crate::tools_file::tables::agent_tools::agent_cycle_warnings;
use crate::tools_file::templates::{SplatPlace, TemplatePolicy};
use crate::tools_file::yaml::YamlNode;
use crate::types::{FileProblem, Span, Template, ToolsConfig};
use redact::Mask;

/// Returns warnings about `tools`. `tree` provides their positions.
pub fn find_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut found = ineffective_secret_warnings(tree, environment);
    found.extend(missing_backing_warning(tools, tree));
    found.extend(agent_cycle_warnings(tools, tree));
    found
}

/// Returns warnings about names under `secrets` that mask nothing because the variable is misspelled, unset, empty, or
/// so short that masking it would hide unrelated text.
fn ineffective_secret_warnings(tree: &YamlNode, environment: &Environment) -> Vec<FileProblem> {
    let mut found = Vec::new();
    for (name, span) in tree.texts_at(&["secrets"]) {
        let value = environment.get_os(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is unset or empty, so nothing is masked");
            (
                message,
                "`secrets` lists names of environment variables; check the spelling",
            )
        } else if value.len() < Mask::MIN_SECRET_BYTES {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked, since that would hide unrelated text",
            )
        } else {
            continue;
        };
        found.push(FileProblem::warning(span, message, "").with_hint(hint));
    }
    found
}

/// Returns one warning for all tools without a backing. Right after `init --from`, that is every tool.
fn missing_backing_warning(tools: &ToolsConfig, tree: &YamlNode) -> Option<FileProblem> {
    let names: Vec<&str> = tools
        .tools
        .iter()
        .filter(|tool| tool.backing.is_none())
        .map(|tool| tool.name.as_str())
        .collect();
    let first = names.first()?;
    let have = if names.len() == 1 { "has" } else { "have" };
    let shown = list_some(
        names.iter().map(|name| format!("`{name}`")),
        MAX_NAMED_TOOLS,
    );
    let message = format!("{shown} {have} no `command`, `http`, `agent` or `mcp`");
    let span = tree.key_span_at(&["tools", first], "");
    let hint = "add one of them; until then, calls can be planned, but running them is an error";
    Some(FileProblem::warning(span, message, "nothing runs it").with_hint(hint))
}

// Warns about likely mistakes in templates: syntax of shells and of other template languages, which is plain text in
// tools.yaml, and inputs that look like paths and reach a program without being kept inside the root.

/// Shell operators, if they are an argument by themselves.
const SHELL_OPERATORS: [&str; 12] = [
    "|", "||", "&", "&&", ";", "<", "<<<", ">", ">>", "2>", "2>&1", "&>",
];

/// Programs with arguments that look like shell operators.
const PROGRAMS_WITH_OPERATOR_ARGS: [&str; 8] =
    ["[", "bfs", "expr", "fd", "fdfind", "find", "gfind", "test"];

impl ToolContext<'_> {
    /// Warns about `$NAME`. In an argument it may mean something to the program, unless it is the whole value or starts
    /// a path.
    pub(crate) fn warn_about_shell_variable<T: AsRef<str>>(
        &mut self,
        spanned: &Spanned<T>,
        mark: &TemplateMark,
        policy: TemplatePolicy,
    ) {
        let text = spanned.value.as_ref();
        let source = &text[mark.range.clone()];
        let (before, after) = (&text[..mark.range.start], &text[mark.range.end..]);
        let name = &source[1..];
        let is_whole = (before.is_empty() || before.ends_with('='))
            && (after.is_empty() || after.starts_with('/'));
        let hint = match policy.variables {
            VariableMode::Expand => format!("write an environment variable as `${{{name}}}`"),
            VariableMode::Literal
                if policy.splat != SplatPlace::Nowhere && !policy.is_code && is_whole =>
            {
                format!(
                    "no shell reads the arguments: write the value out, or let the program read {name} through `env` or `pass_env`"
                )
            }
            VariableMode::Literal => return,
        };
        let span = self.diagnostics.span_within(spanned, &mark.range);
        let message = format!("`{source}` stays text");
        self.diagnostics
            .warning((span, "not replaced"), message, hint);
    }

    /// Warns about `{ name }` or `{name|filter}`, if the input can have such a value.
    pub(crate) fn warn_about_foreign_placeholder(&mut self, span: Span, source: &str) {
        let inner = &source[1..source.len() - 1];
        let Some(path) = foreign_placeholder_path(inner) else {
            return;
        };
        if find_listed(self.schema, &path).is_some() {
            let message = format!("`{source}` stays text");
            let hint = format!(
                "write a value from the input as `{{{}}}`, without spaces or filters; a value that isn't a string becomes JSON",
                path.join(".")
            );
            self.diagnostics
                .warning((span, "not replaced"), message, hint);
        }
    }

    /// Warns about `~`, which shells expand to the home directory.
    pub(crate) fn warn_about_tilde(&mut self, text: &Spanned<String>) {
        if text.value == "~" || text.value.starts_with("~/") {
            self.diagnostics.warning(
                (text.span, "not replaced"),
                "`~` stays text: only a shell expands it to the home directory",
                "write the path out; a program can read the home directory from the variable HOME",
            );
        }
    }

    /// Warns about shell operators among the arguments. `argv` has the elements with their roles, starting with the
    /// program.
    pub(crate) fn warn_about_shell_operators(&mut self, argv: &[(&Spanned<String>, ArgRole)]) {
        let mut programs = argv
            .iter()
            .filter(|(_, role)| *role == ArgRole::Program)
            .map(|(program, _)| base_name(&program.value));
        if programs.any(|program| PROGRAMS_WITH_OPERATOR_ARGS.contains(&program.as_str())) {
            return;
        }
        let is_operator = |(element, role): &&(&Spanned<String>, ArgRole)| {
            *role == ArgRole::Data && SHELL_OPERATORS.contains(&element.value.as_str())
        };
        if let Some((operator, _)) = argv.iter().find(is_operator) {
            self.diagnostics.warning(
                (operator.span, "an argument"),
                format!(
                    "no shell reads the arguments: `{}` is passed to the program",
                    operator.value
                ),
                "run a shell and pass the values separately: `[sh, -c, 'sort -- \"$1\" | uniq', --, \"{path}\"]`",
            );
        }
    }

    /// Warns about `$name` as an argument, if the input has such a value: only a shell would look for a variable. Returns whether it
    /// did.
    pub(crate) fn warn_about_shell_value(&mut self, argument: &Spanned<String>) -> bool {
        let Some(name) = argument.value.strip_prefix('$') else {
            return false;
        };
        let path = [name.to_owned()];
        if find_listed(self.schema, &path).is_none() {
            return false;
        }
        self.diagnostics.warning(
            (argument.span, "not replaced"),
            format!("`${name}` stays text: no shell reads the arguments"),
            format!("write a value from the input as `{{{name}}}`"),
        );
        true
    }
}

/// Names, and ends of names, of inputs that are usually paths.
const PATH_NAMES: [&str; 12] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "file_name",
    "filepath",
    "dir",
    "dirs",
    "directory",
    "directories",
];

impl ToolContext<'_> {
    /// Warns about an input whose name says that it is a path, if it isn't named in `paths`. `paths: []` says that no path needs
    /// to stay inside the root, and a sandbox what any path can reach. Returns whether there was a warning.
    pub(crate) fn warn_about_unconfined_path(
        &mut self,
        element: &Spanned<String>,
        template: &Template,
    ) -> bool {
        if self.has_no_paths || self.sandbox.is_some() {
            return false;
        }
        for path in template.value_paths() {
            let Some(schema) = find_listed(self.schema, path) else {
                continue;
            };
            let is_confined = self.paths.iter().any(|declared| declared == path);
            let is_path = path.last().is_some_and(|name| looks_like_path(name));
            if is_confined || !is_path || accepts_only_plain_text(schema) {
                continue;
            }
            let name = path.join(".");
            self.diagnostics.warning(
                (element.span, "not in `paths`"),
                format!("`{name}` may lead anywhere: it isn't kept inside the root"),
                format!("add `paths: [{name}]` to the tool; `paths: []` says that this is meant, and a `sandbox` limits what any path can reach"),
            );
            return true;
        }
        false
    }
}

fn looks_like_path(name: &str) -> bool {
    let name = snake_case(name);
    PATH_NAMES.iter().any(|known| {
        let before = name.strip_suffix(known);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    })
}

/// Returns a name such as `inputFile` as `input_file`.
fn snake_case(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut follows_lowercase = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && follows_lowercase {
            words.push('_');
        }
        follows_lowercase = c.is_ascii_lowercase() || c.is_ascii_digit();
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::tools_file::load::parse_tools_file;
    use crate::types::Span;

    #[test]
    fn what_has_no_effect_is_warned_about() {
        let text = "secrets: [NONE, SET, LONG]
tools:
  a: {input_schema: {type: object}, command: [cat]}
  b: {input_schema: {type: object}}
";
        let environment = [("SET", "1"), ("LONG", "123456")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_iter()
            .collect();
        let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
        let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
        let found = find_warnings(&tools, &tree, &environment);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|problem| {
                let Span { start, len } = problem.span;
                (problem.message.as_str(), &text[start..start + len])
            })
            .collect();
        let expected = [
            (
                "the variable NONE is unset or empty, so nothing is masked",
                "NONE",
            ),
            ("the value of SET is too short to be masked", "SET"),
            ("`b` has no `command`, `http`, `agent` or `mcp`", "b"),
        ];
        assert_eq!(found, expected);
    }
}

#[cfg(test)]
mod template_warnings_tests {
    use super::*;

    #[test]
    fn names_of_paths_are_recognized_in_every_style() {
        for name in [
            "path",
            "inputFile",
            "input_file",
            "fileName",
            "file_name",
            "filePath",
            "targetDirectory",
            "FILE",
            "out-dir",
        ] {
            assert!(looks_like_path(name), "{name}");
        }
        for name in ["profile", "xpath", "direction", "name", "filter", "endpath"] {
            assert!(!looks_like_path(name), "{name}");
        }
    }
}
