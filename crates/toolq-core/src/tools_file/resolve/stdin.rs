//! Resolves what a program reads from stdin, and checks that it can't be more than the file says.

use crate::template::parse_template;
use crate::tools_file::argv::find_stdin_code_reader;
use crate::tools_file::keys::Argv;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::Field;
use crate::types::StdinSource;

/// Resolves what the program reads. Without a `stdin`, that is the input, unless a template already hands over some of
/// it: a program that doesn't expect the input on stdin could take it for something else.
pub(crate) fn resolve_stdin(
    field: &Field<String>,
    templates_use_input: bool,
    context: &mut ToolContext<'_, '_>,
) -> StdinSource {
    match field.spanned() {
        None => default_stdin(templates_use_input),
        Some(word) if word.value == "input" => StdinSource::Input,
        Some(word) if word.value == "none" => StdinSource::None,
        Some(text) => StdinSource::Template(context.resolve_template(text, TemplatePolicy::TEXT)),
    }
}

/// Reports a program that runs what it reads from stdin: an error if the file doesn't say what that is.
pub(crate) fn report_stdin_code(
    argv: &Argv,
    stdin: &Field<String>,
    context: &mut ToolContext<'_, '_>,
) {
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let Some(program) = find_stdin_code_reader(&texts) else {
        return;
    };
    match stdin.spanned() {
        None => {
            let element = argv.iter().filter_map(Field::spanned);
            let element = element.into_iter().find(|element| element.value == program);
            if let Some(element) = element {
                context.diagnostics.error(
                    element.span,
                    format!("`{program}` runs what it reads from stdin, and the file doesn't say what that is"),
                    "runs its stdin",
                    "name a script or write the code here; `stdin: \"{script}\"` hands over a value to be run, `stdin: none` nothing",
                );
            }
        }
        // Whatever the code is, a sandbox limits what it can do.
        Some(_) if context.sandbox.is_some() => {}
        Some(text) if text.value == "input" || parse_template(&text.value).uses_input() => {
            context.diagnostics.warning(
                text.span,
                format!("`{program}` runs what it reads from stdin"),
                "an input value",
                "this lets the model run any code; if that is meant, limit what the code can reach with a `sandbox`; if not, name a script and pass the value to it",
            );
        }
        Some(_) => {}
    }
}

/// Returns what a program reads if the file doesn't say.
pub(crate) fn default_stdin(templates_use_input: bool) -> StdinSource {
    if templates_use_input {
        StdinSource::None
    } else {
        StdinSource::Input
    }
}
