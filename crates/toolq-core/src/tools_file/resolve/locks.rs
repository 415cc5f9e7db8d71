//! Resolves `locks`: what the calls of a tool read and change.

use crate::tools_file::keys::{SafetyForm, ToolFile};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::Field;
use crate::types::LockTemplates;

/// Returns the locks that the tool declares, if it does.
pub(crate) fn resolve_locks(
    tool: &ToolFile,
    context: &mut ToolContext<'_, '_>,
) -> Option<LockTemplates> {
    let locks = tool.locks.spanned()?;
    let file = &locks.value;
    let is_empty = |field: &Field<Vec<Field<String>>>| field.items().next().is_none();
    if is_empty(&file.read) && is_empty(&file.write) {
        context.diagnostics.error(
            locks.key_span,
            "`locks` names nothing",
            "",
            "write what calls read or change: `locks: {write: [\"file:{path}\"]}`; leave it out for calls that run alone",
        );
    }
    if !tool.agent.is_missing() {
        context.diagnostics.error(
            locks.key_span,
            "an agent can't have locks",
            "its calls may touch anything that its tools can",
            "declare the locks of its tools instead; they hold among its own calls",
        );
    }
    check_safety(tool, is_empty(&file.write), context);
    let mut resolve = |field: &Field<Vec<Field<String>>>| {
        let names = field.items();
        names
            .map(|name| context.resolve_template(name, TemplatePolicy::LOCK))
            .collect()
    };
    Some(LockTemplates {
        read: resolve(&file.read),
        write: resolve(&file.write),
    })
}

/// A tool that changes something can't run alongside calls that read it.
fn check_safety(tool: &ToolFile, only_reads: bool, context: &mut ToolContext<'_, '_>) {
    let Some(safety) = tool.concurrency_safe.spanned() else {
        return;
    };
    if only_reads || matches!(safety.value, SafetyForm::Boolean(false)) {
        return;
    }
    context.diagnostics.error(
        safety.key_span,
        "`concurrency_safe` has no effect on calls that change what they lock",
        "",
        "remove it: calls with `locks` run together unless they lock the same",
    );
}
