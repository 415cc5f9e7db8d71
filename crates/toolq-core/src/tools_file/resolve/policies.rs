//! Resolves how calls of a tool are treated: whether they may run together, need an approval, are declared destructive,
//! or are answered from the cache.

use std::path::Path;

use crate::tools_file::keys::{ApproveForm, ApproveWord, CacheFile, OnceForm, ToolFile};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::schema_presence::{SchemaPresence, find_presence};
use crate::tools_file::resolve::tool::SharedSettings;
use crate::tools_file::resolve::value_names::resolve_value_names;
use crate::tools_file::spanned::Field;
use crate::types::{ApprovalPolicy, CachePolicy, Effect, OncePolicy, SafetyPolicy};

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

/// Returns which calls are the same, whatever their ids.
pub(crate) fn resolve_once(
    field: &Field<OnceForm>,
    effect: Effect,
    dir: &Path,
    context: &mut ToolContext<'_, '_>,
) -> Option<OncePolicy> {
    let once = field.spanned()?;
    let (key, max_age, scope) = match &once.value {
        OnceForm::List(key) => (Some(key), None, None),
        OnceForm::Table(table) => (
            table.key.value(),
            table.max_age.value(),
            table.scope.value(),
        ),
    };
    let named = key.into_iter().flatten().filter_map(Field::spanned);
    if effect == Effect::Read {
        context.diagnostics.error(
            once.key_span,
            "a tool with `effect: read` can't have `once`",
            "its calls change nothing, so they may run again",
            "write `effect: write` if it changes something; `cache` keeps the results of reads",
        );
    }
    if key.is_none_or(Vec::is_empty) {
        context.diagnostics.error(
            once.key_span,
            "`once` names no input",
            "",
            "say which values name a call: `once: [order_id]`",
        );
    }
    let mut names = Vec::new();
    for dotted in named {
        let hint = "only an input can name a call";
        let path = resolve_value_names(std::iter::once(dotted), hint, context);
        let lacks = |path| {
            let presence = find_presence(context.schema, path);
            matches!(presence, SchemaPresence::Optional(_))
        };
        if path.iter().any(|path| lacks(path)) {
            context.diagnostics.error(
                dotted.span,
                format!("a call may lack `{}`, so it can't name one", dotted.value),
                "not in `required`",
                "add it to `required`, or leave it out here",
            );
        }
        names.extend(path);
    }
    Some(OncePolicy {
        names,
        scope: scope.map_or_else(|| dir.display().to_string(), Clone::clone),
        expires: max_age.map(|max_age| max_age.0),
    })
}
