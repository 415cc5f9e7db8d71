//! Warns about scripts that do more with their arguments than read them.

use std::collections::BTreeSet;

use crate::tools_file::argv::{ArgRole, base_name, classify_args};
use crate::tools_file::lints::evaluated_values::evaluates_any_value;
use crate::tools_file::lints::script_hazards::runs_any_value;
use crate::tools_file::resolve::{
    SchemaPresence, ToolContext, accepts_only_plain_text, find_presence,
};
use crate::tools_file::spanned::Field;
use crate::types::{ArgumentTemplate, Template, TemplatePart};

/// Shells that evaluate the text of a variable in arithmetic, and the index of an array in it, which may be `$(…)`.
const EVALUATING_SHELLS: [&str; 5] = ["sh", "bash", "zsh", "ksh", "mksh"];

/// Shells whose scripts are looked into.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"];

impl ToolContext<'_, '_> {
    /// Warns if the script in `argv` runs a value, or evaluates one. `arguments` are the templates after the program,
    /// and `env` the variables that the script can read.
    pub(crate) fn warn_about_values_that_scripts_run(
        &mut self,
        argv: &[Field<String>],
        arguments: &[ArgumentTemplate],
        env: &[(String, Template)],
    ) {
        let elements = argv.iter().filter_map(Field::spanned);
        let elements: Vec<_> = elements.collect();
        if elements.len() != arguments.len() + 1 {
            return;
        }
        let texts: Vec<&str> = elements
            .iter()
            .map(|element| element.value.as_str())
            .collect();
        let roles = classify_args(&texts);
        let Some(code) = roles.iter().rposition(|role| *role == ArgRole::Code) else {
            return;
        };
        let program = roles[..code]
            .iter()
            .rposition(|role| *role == ArgRole::Program);
        let shell = base_name(texts[program.unwrap_or_default()]);
        if !SHELLS.contains(&shell.as_str()) {
            return;
        }
        let values = self.script_values(&arguments[code..], env);
        if runs_any_value(texts[code], &values) {
            self.diagnostics.warning(
                elements[code].span,
                "this script runs a value from the input, or a part of it",
                "runs a value",
                "name what runs here, and hand the value over as data: `grep -e \"$1\" notes`",
            );
        }
        let evaluates = EVALUATING_SHELLS.contains(&shell.as_str());
        if evaluates && evaluates_any_value(texts[code], &values) {
            self.diagnostics.warning(
                elements[code].span,
                "this script evaluates a value, so it can run one such as `a[$(…)]`",
                "evaluated, not only compared",
                "compare with `[ \"$1\" = 1 ]`, refuse what isn't a number with `case $1 in *[!0-9]*) exit 2;; esac`, or restrict the input: `type: integer`",
            );
        }
    }

    /// Returns the names of the parameters that hold free values: `0` is the first of `arguments`.
    fn script_values(
        &self,
        arguments: &[ArgumentTemplate],
        env: &[(String, Template)],
    ) -> BTreeSet<String> {
        let is_free = |template: &Template| template.value_paths().any(|path| !self.is_plain(path));
        let variables = env.iter().filter(|(_, template)| is_free(template));
        let mut names: BTreeSet<String> = variables.map(|(name, _)| name.clone()).collect();
        for (index, argument) in arguments.iter().enumerate() {
            let is_spread = argument
                .template
                .parts
                .iter()
                .any(|part| matches!(part, TemplatePart::Value { splat: true, .. }));
            if is_free(&argument.template) {
                let last = if is_spread { 9 } else { index };
                names.extend((index..=last).map(|index| index.to_string()));
            }
        }
        names
    }

    /// Warns about `{args...}` if it can hold every argument of a program, its subcommand included, unless a sandbox limits
    /// what that can do. `texts` is `argv` as written, and `arguments` what it was resolved into.
    pub(crate) fn warn_about_free_spread(
        &mut self,
        texts: &[&str],
        arguments: &[ArgumentTemplate],
        argv: &[Field<String>],
    ) {
        if self.sandbox.is_some() || arguments.len() != argv.len() {
            return;
        }
        let roles = classify_args(texts);
        for (index, argument) in arguments.iter().enumerate() {
            let Some((path, _)) = argument.template.sole_splat() else {
                continue;
            };
            let is_path = self.paths.iter().any(|declared| declared == path);
            let is_harmless = is_path || roles[index] != ArgRole::Data || self.is_plain(path);
            let (Some(element), false) = (argv[index].spanned(), is_harmless) else {
                continue;
            };
            let program = roles[..index]
                .iter()
                .rposition(|role| *role == ArgRole::Program)
                .unwrap_or(0);
            let script = (program..index)
                .find(|at| roles[*at] == ArgRole::Code && texts[*at].contains("\"$@\""));
            let is_free = match script {
                Some(at) => !texts[at].contains("-- \"$@\""),
                None => {
                    roles[program..index]
                        .iter()
                        .all(|role| *role != ArgRole::Code)
                        && !texts[program + 1..index]
                            .iter()
                            .any(|text| *text == "--" || !text.starts_with('-'))
                }
            };
            if is_free {
                let name = path.join(".");
                self.diagnostics.warning(
                    element.span,
                    format!("`{name}` chooses every argument of a program, so it can choose what the program does"),
                    "no fixed subcommand, no `--` before it",
                    format!("write the subcommand and `--` before it, and restrict the items of `{name}` with an `enum` or a `pattern`; or limit what the program can reach with a `sandbox`"),
                );
            }
        }
    }

    fn is_plain(&self, path: &[String]) -> bool {
        match find_presence(self.schema, path) {
            SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
                accepts_only_plain_text(schema)
            }
            _ => false,
        }
    }
}
