//! Resolves `wrapper`, of a tool, of a server, or in `defaults`.

use crate::tools_file::argv::{WrapperKind, classify_wrapper, find_handover};
use crate::tools_file::keys::{Argv, WrapperForm};
use crate::tools_file::resolve::argument::{check_no_nul, place_program};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{CommandWrapper, WrapperQuoting};

const WRAPPER_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "a wrapper can't contain a value from the input",
    "it decides how everything runs; pass the value as an argument of `command`",
);

/// Returns the wrapper, or `default` if the key is missing. An empty list means no wrapper.
pub(crate) fn resolve_wrapper(
    field: &Field<WrapperForm>,
    default: Option<&CommandWrapper>,
    context: &mut ToolContext<'_, '_>,
) -> Option<CommandWrapper> {
    let Some(form) = field.spanned() else {
        return default.cloned();
    };
    let missing = Argv::new();
    let (argv, quoting) = match &form.value {
        WrapperForm::List(argv) => (argv, WrapperQuoting::None),
        WrapperForm::Table(table) => {
            if table.argv.is_missing() {
                let hint = "add the wrapper and its arguments: `{argv: [ssh, HOST], quote: posix}`";
                let message = "`wrapper` has no `argv`";
                context.diagnostics.error(form.key_span, message, "", hint);
            }
            let quoting = table.quote.value().copied().unwrap_or_default();
            (table.argv.value().unwrap_or(&missing), quoting)
        }
    };
    let mut words = Vec::new();
    for element in argv.iter().filter_map(Field::spanned) {
        check_no_nul(element, context);
        context.warn_about_tilde(element);
        let template = context.resolve_template(element, WRAPPER_POLICY);
        words.push(template.sole_text().unwrap_or_default().to_owned());
    }
    if words.is_empty() {
        return None;
    }
    check_quoting(form, &words, quoting, context);
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let hands_over_to = find_handover(&texts);
    words[0] = place_program(&words[0], form.key_span, context);
    Some(CommandWrapper {
        argv: words,
        quoting,
        hands_over_to,
    })
}

/// Reports a wrapper that takes shell text if nothing is quoted for it, and one that doesn't if everything is.
fn check_quoting(
    form: &Spanned<WrapperForm>,
    words: &[String],
    quoting: WrapperQuoting,
    context: &mut ToolContext<'_, '_>,
) {
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    match (classify_wrapper(&texts), quoting) {
        (WrapperKind::TakesShellText(program), WrapperQuoting::None) => context.diagnostics.error(
            form.key_span,
            format!("`{program}` makes shell text of its arguments, so a value could become code"),
            "",
            "quote each argument for its shell: `wrapper: {argv: […], quote: posix}`",
        ),
        (WrapperKind::RunsProgram, WrapperQuoting::Posix) => context.diagnostics.error(
            form.key_span,
            format!(
                "`{}` runs a program, so it would look for one with quotes in its name",
                words[0]
            ),
            "",
            "remove `quote`: the arguments are handed over as they are",
        ),
        _ => {}
    }
}
