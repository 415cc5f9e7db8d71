//! Resolves how calls of a tool are treated: whether they may run together, need an approval, are declared destructive,
//! or are answered from the cache.

use crate::tools_file::keys::{ApproveForm, ApproveWord, CacheFile, ToolFile};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::tool::SharedSettings;
use crate::tools_file::spanned::Field;
use crate::types::{ApprovalPolicy, CachePolicy, Effect, SafetyPolicy};

/// Returns what decides whether calls are concurrency-safe. What the lock says is below all that the file says.
pub(crate) fn resolve_safety(
    name: &str,
    tool: &ToolFile,
    shared: &SharedSettings<'_>,
    locked_effect: Option<Effect>,
) -> SafetyPolicy {
    let declared = tool.concurrency_safe.value();
    let rules = shared.rules;
    match rules.resolve_safety(name, declared, tool.effect.value().copied()) {
        SafetyPolicy::Default => locked_effect.map_or(SafetyPolicy::Default, |effect| {
            SafetyPolicy::Effect(effect == Effect::Read)
        }),
        policy => policy,
    }
}

/// Returns which calls need an approval.
pub(crate) fn resolve_approval(form: Option<&ApproveForm>, effect: Effect) -> ApprovalPolicy {
    let always = |needed| {
        if needed {
            ApprovalPolicy::Always
        } else {
            ApprovalPolicy::Never
        }
    };
    match form {
        None => ApprovalPolicy::Never,
        Some(ApproveForm::Boolean(needed)) => always(*needed),
        Some(ApproveForm::Text(ApproveWord::Writes)) => always(effect != Effect::Read),
        Some(ApproveForm::Table(table)) => match table.when.value() {
            Some(when) => ApprovalPolicy::When(when.clone()),
            None => ApprovalPolicy::Always,
        },
    }
}

/// Returns whether the tool is declared to clients as destructive. A tool that changes nothing can't be.
pub(crate) fn resolve_destructive(
    field: &Field<bool>,
    effect: Effect,
    diagnostics: &mut Diagnostics<'_>,
) -> Option<bool> {
    let destructive = field.spanned()?;
    if destructive.value && effect == Effect::Read {
        diagnostics.error(
            destructive.span,
            "a tool with `effect: read` changes nothing, so it can't be destructive",
            "",
            "remove `destructive`, or write `effect: write`",
        );
    }
    Some(destructive.value)
}

/// Returns when results answer other calls.
pub(crate) fn resolve_cache(
    field: &Field<CacheFile>,
    effect: Effect,
    diagnostics: &mut Diagnostics<'_>,
) -> Option<CachePolicy> {
    let cache = field.spanned()?;
    if effect != Effect::Read {
        diagnostics.error(
            cache.key_span,
            format!(
                "a tool with `effect: {}` can't have a `cache`",
                effect.name()
            ),
            "its calls would do nothing",
            "write `effect: read` if it changes nothing, or remove `cache`",
        );
    }
    if cache.value.max_age.is_missing() {
        let hint = "say how old a result may be: `cache: {for: 10m}`";
        diagnostics.error(cache.key_span, "`cache` has no `for`", "", hint);
    }
    Some(CachePolicy {
        max_age: cache.value.max_age.value()?.0,
    })
}
