//! Resolves what a program reads from stdin, and checks that it can't be more than the file says.

use crate::template::parse_template;
use crate::tools_file::argv::{base_name, find_stdin_code_reader};
use crate::tools_file::keys::Argv;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::Field;
use crate::types::StdinSource;

/// Reports a program whose stdin may do what its author doesn't expect. `templates_use_input` says whether arguments or
/// variables hand over some of the input.
pub(crate) fn check_stdin(
    argv: &Argv,
    stdin: &Field<String>,
    templates_use_input: bool,
    context: &mut ToolContext<'_, '_>,
) {
    report_stdin_code(argv, stdin, context);
    if templates_use_input && stdin.is_missing() {
        warn_about_empty_stdin(argv, context);
    }
}

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
fn report_stdin_code(argv: &Argv, stdin: &Field<String>, context: &mut ToolContext<'_, '_>) {
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let Some(program) = find_stdin_code_reader(&texts) else {
        warn_about_split_stdin(&texts, stdin, context);
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

/// Warns about values in the stdin of xargs, which makes arguments of them.
fn warn_about_split_stdin(argv: &[&str], stdin: &Field<String>, context: &mut ToolContext<'_, '_>) {
    let runs_xargs = argv
        .first()
        .is_some_and(|program| base_name(program) == "xargs");
    if let Some(text) = stdin.spanned()
        && runs_xargs
        && parse_template(&text.value).uses_input()
    {
        context.diagnostics.warning(
            text.span,
            "`xargs` splits its stdin into arguments, which may be options or programs",
            "an input value",
            "spread an array instead: `[wc, --, \"{paths...}\"]`",
        );
    }
}

/// Warns about code that reads stdin where stdin was the input until version 0.1, and is empty now.
fn warn_about_empty_stdin(argv: &Argv, context: &mut ToolContext<'_, '_>) {
    const READS_STDIN: [&str; 6] = [
        "stdin",
        "STDIN",
        "php://input",
        "/dev/fd/0",
        "read -r ",
        "$(cat)",
    ];
    let reads_stdin = |text: &str| READS_STDIN.iter().any(|marker| text.contains(marker));
    let element = argv
        .iter()
        .filter_map(Field::spanned)
        .find(|element| reads_stdin(&element.value));
    if let Some(element) = element {
        context.diagnostics.warning(
            element.span,
            "this seems to read stdin, which is empty: the input is handed over in arguments or variables",
            "stdin was the input in earlier versions",
            "write `stdin: input` if it reads the input as JSON, or `stdin: none` if it doesn't",
        );
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
