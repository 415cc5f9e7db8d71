//! Resolves `wrapper`, of a tool, of a server, or in `defaults`.

use crate::tools_file::argv::{find_code_wrapper, find_handover};
use crate::tools_file::keys::Argv;
use crate::tools_file::resolve::argument::{check_no_nul, place_program};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::Field;
use crate::types::CommandWrapper;

const WRAPPER_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "a wrapper can't contain a value from the input",
    "it decides how everything runs; pass the value as an argument of `command`",
);

/// Returns the wrapper, or `default` if the key is missing. An empty list means no wrapper.
pub(crate) fn resolve_wrapper(
    field: &Field<Argv>,
    default: Option<&CommandWrapper>,
    context: &mut ToolContext<'_, '_>,
) -> Option<CommandWrapper> {
    let Some(list) = field.spanned() else {
        return default.cloned();
    };
    let mut argv = Vec::new();
    for element in list.value.iter().filter_map(Field::spanned) {
        check_no_nul(element, context);
        context.warn_about_tilde(element);
        let template = context.resolve_template(element, WRAPPER_POLICY);
        argv.push(template.sole_text().unwrap_or_default().to_owned());
    }
    if argv.is_empty() {
        return None;
    }
    let texts: Vec<&str> = argv.iter().map(String::as_str).collect();
    if let Some(program) = find_code_wrapper(&texts) {
        context.diagnostics.error(
            list.key_span,
            format!("`{program}` makes shell text of its arguments, so a value could become code"),
            "",
            "name a wrapper that runs its arguments as they are, such as `[docker, exec, NAME]`; or make it the tool's own `command`, and pass values in `stdin`",
        );
    }
    let hands_over_to = find_handover(&texts);
    argv[0] = place_program(&argv[0], list.key_span, context);
    Some(CommandWrapper {
        argv,
        hands_over_to,
    })
}
