//! When the calls of a tool start, and which of them run: `max_parallel`, `rate`, `locks`, `cache` and `once`.

use std::num::NonZeroUsize;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::context::{Diagnostics, ToolContext};
use crate::tools_file::input_values::{SchemaPresence, find_presence, resolve_value_names};
use crate::tools_file::spanned::Field;
use crate::tools_file::tables::values::{DurationText, RateText};
use crate::tools_file::tables::when::SafetyForm;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{CachePolicy, Effect, LockTemplates, OncePolicy, StartLimits};

/// For how long results are kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["for"]))]
pub struct CacheFile {
    /// Maximum age of a result.
    #[serde(rename = "for")]
    pub max_age: Field<DurationText>,
}

/// Which calls are the same.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a list of inputs such as `[order_id]`, or a table such as `{key: [order_id], for: 30d}`"
)]
#[schemars(rename = "Once", untagged)]
pub enum OnceForm {
    /// The inputs.
    List(Vec<Field<String>>),
    /// The inputs, and where and for how long their values count.
    Table(OnceTable),
}

/// The inputs, and where and for how long their values count.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["key"]))]
pub struct OnceTable {
    /// The inputs.
    pub key: Field<Vec<Field<String>>>,
    /// For how long a result counts. Default: for ever.
    #[serde(rename = "for")]
    pub max_age: Field<DurationText>,
    /// Tools of this name with the same scope share what they did. Default: the folder of tools.yaml.
    pub scope: Field<String>,
}

/// What calls read and change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct LocksFile {
    /// What they read. Any number of calls may read the same at the same time.
    pub read: Field<Vec<Field<String>>>,
    /// What they change. Only one call may do so at a time, while no other reads it.
    pub write: Field<Vec<Field<String>>>,
}

/// Reports a limit that would let nothing start.
pub(crate) fn check_max_parallel(field: &Field<u32>, diagnostics: &mut Diagnostics) {
    if let Some(zero) = field.outside(1..) {
        diagnostics.error(
            (zero.span, "at least 1"),
            "`max_parallel` would let no call start",
            "leave it out for no limit",
        );
    }
}

/// Returns the limits that two keys declare.
pub(crate) fn resolve_start_limits(
    max_parallel: &Field<u32>,
    rate: &Field<RateText>,
) -> StartLimits {
    StartLimits {
        max_parallel: max_parallel
            .value()
            .and_then(|calls| NonZeroUsize::new(*calls as usize)),
        rate: rate.value().map(|rate| rate.0),
    }
}

/// Returns the locks that the tool declares, if it does.
pub(crate) fn resolve_locks(
    field: &Field<LocksFile>,
    is_agent: bool,
    safety: &Field<SafetyForm>,
    context: &mut ToolContext<'_>,
) -> Option<LockTemplates> {
    let locks = field.spanned()?;
    let file = &locks.value;
    let is_empty = |field: &Field<Vec<Field<String>>>| field.items().next().is_none();
    if is_empty(&file.read) && is_empty(&file.write) {
        context.diagnostics.error(
            locks.key_span,
            "`locks` names nothing",
            "write what calls read or change: `locks: {write: [\"file:{path}\"]}`; leave it out for calls that run alone",
        );
    }
    if is_agent {
        context.diagnostics.error(
            (
                locks.key_span,
                "its calls may touch anything that its tools can",
            ),
            "an agent can't have locks",
            "declare the locks of its tools instead; they hold among its own calls",
        );
    }
    // A tool that changes something can't run alongside calls that read it.
    if let Some(safety) = safety.spanned()
        && !is_empty(&file.write)
        && !matches!(safety.value, SafetyForm::Boolean(false))
    {
        context.diagnostics.error(
            safety.key_span,
            "`concurrency_safe` has no effect on calls that change what they lock",
            "remove it: calls with `locks` run together unless they lock the same",
        );
    }
    let mut resolve = |field: &Field<Vec<Field<String>>>| {
        field
            .items()
            .map(|name| context.resolve_template(name, TemplatePolicy::LOCK))
            .collect()
    };
    Some(LockTemplates {
        read: resolve(&file.read),
        write: resolve(&file.write),
    })
}

/// Returns when results answer other calls.
pub(crate) fn resolve_cache(
    field: &Field<CacheFile>,
    effect: Effect,
    diagnostics: &mut Diagnostics,
) -> Option<CachePolicy> {
    let cache = field.spanned()?;
    if effect != Effect::Read {
        diagnostics.error(
            (cache.key_span, "its calls would do nothing"),
            format!(
                "a tool with `effect: {}` can't have a `cache`",
                effect.name()
            ),
            "write `effect: read` if it changes nothing, or remove `cache`",
        );
    }
    if cache.value.max_age.is_missing() {
        let hint = "say how old a result may be: `cache: {for: 10m}`";
        diagnostics.error(cache.key_span, "`cache` has no `for`", hint);
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
    context: &mut ToolContext<'_>,
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
            (
                once.key_span,
                "its calls change nothing, so they may run again",
            ),
            "a tool with `effect: read` can't have `once`",
            "write `effect: write` if it changes something; `cache` keeps the results of reads",
        );
    }
    if key.is_none_or(Vec::is_empty) {
        context.diagnostics.error(
            once.key_span,
            "`once` names no input",
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
                (dotted.span, "not in `required`"),
                format!("a call may lack `{}`, so it can't name one", dotted.value),
                "add it to `required`, or leave it out here",
            );
        }
        names.extend(path);
    }
    Some(OncePolicy {
        names,
        scope: scope.cloned().unwrap_or_else(|| {
            // The folder has one name, however the file was named.
            let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
            dir.display().to_string()
        }),
        expires: max_age.map(|max_age| max_age.0),
    })
}
