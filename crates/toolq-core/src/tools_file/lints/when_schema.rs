//! Checks that the schema in `{when: SCHEMA}`, of `concurrency_safe` and `approve`, is about the input. JSON Schema ignores
//! unknown keywords, and a schema that accepts everything would mean the same for every call.

mod when_checker;

use serde_json::{Map, Value};

use crate::json_schema::find_unknown_keywords;
use crate::tools_file::keys::{ApproveForm, SafetyForm, ToolFile};
use crate::tools_file::resolve::{CheckContext, SchemaPlace};
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::Span;

use when_checker::WhenChecker;

const WHEN_HINT: &str = "write `when` as a schema of the whole input: `{properties: {query: {pattern: \"^SELECT [^;]*$\"}}, required: [query]}`";

/// A `when` in tools.yaml.
pub(crate) struct WhenField<'f> {
    /// The key that has it: `concurrency_safe` or `approve`.
    pub(crate) key: &'static str,
    pub(crate) key_span: Span,
    pub(crate) when: &'f Field<Value>,
}

impl<'f> WhenField<'f> {
    /// Returns the `when` of an `approve`, if it has one.
    pub(crate) fn of_approve(approve: &'f Field<ApproveForm>) -> Option<Self> {
        let form = approve.spanned()?;
        let ApproveForm::Table(table) = &form.value else {
            return None;
        };
        Some(Self {
            key: "approve",
            key_span: form.key_span,
            when: &table.when,
        })
    }

    fn of_safety(safety: &'f Field<SafetyForm>) -> Option<Self> {
        let form = safety.spanned()?;
        let SafetyForm::Table(table) = &form.value else {
            return None;
        };
        Some(Self {
            key: "concurrency_safe",
            key_span: form.key_span,
            when: &table.when,
        })
    }
}

/// Checks each `when` of the tool `name`, whose inputs `input_schema` describes.
pub(crate) fn check_when(
    name: &str,
    file: &Spanned<ToolFile>,
    input_schema: &Value,
    context: &mut CheckContext<'_, '_>,
) {
    let tool = &file.value;
    let fields = [
        WhenField::of_safety(&tool.concurrency_safe),
        WhenField::of_approve(&tool.approve),
    ];
    for field in fields.into_iter().flatten() {
        let Some(when) = check_shared_when(&field, &["tools", name], context) else {
            continue;
        };
        let mut checker = WhenChecker {
            input_schema,
            when_keys: ["tools", name, field.key, "when"],
            context,
        };
        checker.check_subschema(when, "", &[]);
    }
}

/// Checks a `when` at `parent` in the file as far as that is possible without the schema of an input. Returns it if it
/// is a valid schema.
pub(crate) fn check_shared_when<'f>(
    field: &WhenField<'f>,
    parent: &[&str],
    context: &mut CheckContext<'_, '_>,
) -> Option<&'f Value> {
    let key = field.key;
    if field.when.is_missing() {
        context.diagnostics.error(
            field.key_span,
            format!("`{key}` has no `when`"),
            "",
            "write `true`, `false`, or `{when: SCHEMA}` with a schema of the input",
        );
    }
    let when = field.when.value()?;
    let keys = [parent, &[key, "when"]].concat();
    let place = SchemaPlace {
        keys: &keys,
        file: None,
    };
    if !context.check_schema(when, place) {
        return None;
    }
    if matches!(when, Value::Bool(_)) || when.as_object().is_some_and(Map::is_empty) {
        context.diagnostics.error(
            context.tree.key_span_at(&keys, ""),
            "this `when` checks nothing",
            "the same for every input",
            format!("write `{key}: true` or `false` if that is meant; {WHEN_HINT}"),
        );
    }
    for unknown in find_unknown_keywords(when) {
        let hint = match unknown.suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => WHEN_HINT.to_owned(),
        };
        context.diagnostics.error(
            context.tree.key_span_at(&keys, &unknown.pointer),
            format!(
                "`{}` isn't a JSON Schema keyword, so it checks nothing",
                unknown.key
            ),
            same_for_all(key),
            hint,
        );
    }
    Some(when)
}

/// Says what a part of a `when` that checks nothing does.
fn same_for_all(key: &str) -> &'static str {
    match key {
        "approve" => "every input would need an approval",
        _ => "every input would pass",
    }
}
