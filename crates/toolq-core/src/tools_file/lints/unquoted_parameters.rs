//! Warns about `$1` outside of quotes in a shell script: a value with spaces becomes several arguments, one with `*` the
//! names of files.

mod parameter_syntax;
mod script_scanner;
mod script_words;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::tools_file::argv::{ArgRole, base_name, classify_args};
use crate::tools_file::lints::unquoted_parameters::script_scanner::find_split_parameters;
use crate::tools_file::resolve::{
    SchemaPresence, ToolContext, accepts_only_plain_text, find_presence,
};
use crate::tools_file::spanned::Field;
use crate::types::{ArgumentTemplate, Template, TemplatePart};

/// Shells that split what isn't quoted.
const SPLITTING_SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "mksh"];
/// What a script contains that splits values on purpose, or keeps file names out of them.
const DELIBERATE_SPLITTING: [&str; 3] = ["IFS=", "set -f", "noglob"];
/// What a script contains where `$1` may be another value than the one after the script.
const OWN_PARAMETERS: [&str; 3] = ["set --", "()", "function "];

/// What a script gets from the input.
struct ScriptValues<'t> {
    /// The arguments after the script, `$0` included.
    arguments: Vec<&'t Template>,
    env: &'t [(String, Template)],
}

impl ToolContext<'_, '_> {
    /// Warns about each unquoted parameter of a shell script that has a value from the input. `arguments` and `env` are
    /// what the tool's `argv`, without its program, and `env` were resolved into.
    pub(crate) fn warn_about_unquoted_parameters(
        &mut self,
        argv: &[Field<String>],
        arguments: &[ArgumentTemplate],
        env: &[(String, Template)],
    ) {
        if arguments.len() + 1 != argv.len() {
            return;
        }
        let text = |element: &Field<String>| element.value().cloned().unwrap_or_default();
        let texts: Vec<String> = argv.iter().map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut program = String::new();
        for (index, role) in classify_args(&texts).into_iter().enumerate() {
            match role {
                ArgRole::Program => program = base_name(texts[index]),
                ArgRole::Code if SPLITTING_SHELLS.contains(&program.as_str()) => {
                    let arguments = arguments[index..].iter();
                    let values = ScriptValues {
                        arguments: arguments.map(|argument| &argument.template).collect(),
                        env,
                    };
                    self.warn_about_splitting(&argv[index], &values);
                }
                _ => {}
            }
        }
    }

    fn warn_about_splitting(&mut self, script: &Field<String>, values: &ScriptValues<'_>) {
        let Some(script) = script.spanned() else {
            return;
        };
        let text = script.value.as_str();
        if DELIBERATE_SPLITTING.iter().any(|mark| text.contains(mark)) {
            return;
        }
        let mut reported = HashSet::new();
        for (range, name) in find_split_parameters(text) {
            let source = &text[range.clone()];
            if !self.is_free_parameter(text, name, values) || !reported.insert(source) {
                continue;
            }
            let span = self.diagnostics.span_within(script, &range);
            self.diagnostics.warning(
                span,
                format!("`{source}` isn't quoted: a value with spaces becomes several arguments, and one with `*` the names of files"),
                "split by the shell",
                format!("write `\"{source}\"`"),
            );
        }
    }

    /// Whether a parameter can hold a text that means something to a shell.
    fn is_free_parameter(&self, script: &str, name: &str, values: &ScriptValues<'_>) -> bool {
        let is_variable = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_variable {
            let is_free = |(variable, value): &(String, Template)| {
                variable == name && self.is_free_template(value)
            };
            return !sets_variable(script, name) && values.env.iter().any(is_free);
        }
        if OWN_PARAMETERS.iter().any(|mark| script.contains(mark)) {
            return false;
        }
        let arguments = &values.arguments;
        let may_move = |argument: &&Template| argument.parts.iter().any(is_optional_or_spread);
        let movable = arguments.iter().position(may_move);
        let fixed_count = movable.unwrap_or(arguments.len());
        match name.parse::<usize>() {
            Ok(number) if number < fixed_count && !script.contains("shift") => {
                self.is_free_template(arguments[number])
            }
            Ok(_) if script.contains("shift") => self.any_is_free(&arguments[..]),
            Ok(_) => self.any_is_free(&arguments[fixed_count..]),
            Err(_) => self.any_is_free(arguments.get(1..).unwrap_or_default()),
        }
    }

    fn any_is_free(&self, arguments: &[&Template]) -> bool {
        arguments
            .iter()
            .any(|argument| self.is_free_template(argument))
    }

    fn is_free_template(&self, template: &Template) -> bool {
        let is_plain = |path: &[String]| match find_presence(self.schema, path) {
            SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
                accepts_only_plain_text(schema)
            }
            // The placeholder itself is reported.
            SchemaPresence::Absent { .. } => true,
            SchemaPresence::Unknown => false,
        };
        !template.value_paths().all(is_plain)
    }
}

/// Whether a script sets a variable, so that it may hold another value than the one in `env`.
fn sets_variable(script: &str, name: &str) -> bool {
    let reads = |rest: &str| {
        let command = rest.split(['\n', ';', '|', '&']).next().unwrap_or_default();
        command.split_whitespace().any(|word| word == name)
    };
    script.contains(&format!("{name}="))
        || script.contains(&format!("for {name} "))
        || script.split("read ").skip(1).any(reads)
}

/// Whether the arguments after one with this part have no fixed position.
fn is_optional_or_spread(part: &TemplatePart) -> bool {
    match part {
        TemplatePart::Value {
            optional, splat, ..
        } => *optional || *splat,
        TemplatePart::Text(_) | TemplatePart::Env { .. } => false,
    }
}
