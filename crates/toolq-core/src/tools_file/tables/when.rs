//! `approve` and `concurrency_safe`, which may depend on the input: `{when: SCHEMA}`.
//!
//! JSON Schema ignores unknown keywords, and a schema that accepts everything would mean the same for every call, so it
//! is checked that a `when` is about the input.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json::escape_pointer_token;
use crate::json_schema::{find_unknown_keywords, type_of_keyword};
use crate::text::suggest_name;
use crate::tools_file::context::{CheckContext, SchemaPlace};
use crate::tools_file::input_values::{SchemaPresence, allows_type, find_listed, find_presence};
use crate::tools_file::spanned::Field;
use crate::tools_file::tables::values::JsonObject;
use crate::types::{ApprovalPolicy, Effect, Span};

/// Whether calls start only after they are approved.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "`true`, `false`, `writes` or `{when: SCHEMA}`"
)]
#[schemars(rename = "Approve", untagged)]
pub enum ApproveForm {
    /// Always or never.
    Boolean(bool),
    /// Depending on the tool.
    Text(ApproveWord),
    /// Depending on the input.
    Table(WhenTable),
}

/// Which tools need an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApproveWord {
    /// Those that aren't `read`.
    Writes,
}

/// An answer that depends on the input.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["when"]))]
pub struct WhenTable {
    /// JSON Schema of the inputs for which the answer is yes.
    #[schemars(with = "Field<JsonObject>")]
    pub when: Field<Value>,
}

/// Whether calls may run in parallel with other safe calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "`true`, `false` or `{when: SCHEMA}`"
)]
#[schemars(rename = "Safety", untagged)]
pub enum SafetyForm {
    /// Always or never.
    Boolean(bool),
    /// Depending on the input.
    Table(WhenTable),
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
    (safety, approve): (&Field<SafetyForm>, &Field<ApproveForm>),
    input_schema: &Value,
    context: &mut CheckContext<'_>,
) {
    let fields = [WhenField::of_safety(safety), WhenField::of_approve(approve)];
    for field in fields.into_iter().flatten() {
        check_when_of(&field, &["tools", name], input_schema, context);
    }
}

/// Checks a `when` that is at `parent` in the file, and whose inputs `input_schema` describes.
pub(crate) fn check_when_of(
    field: &WhenField<'_>,
    parent: &[&str],
    input_schema: &Value,
    context: &mut CheckContext<'_>,
) {
    let Some(when) = check_when_schema(field, parent, context) else {
        return;
    };
    let mut checker = WhenChecker {
        input_schema,
        key: field.key,
        when_keys: &[parent, &[field.key, "when"]].concat(),
        context,
    };
    checker.check_subschema(when, "", &[]);
}

/// Checks a `when` at `parent` in the file as far as that is possible without the schema of an input. Returns it if it
/// is a valid schema.
fn check_when_schema<'f>(
    field: &WhenField<'f>,
    parent: &[&str],
    context: &mut CheckContext<'_>,
) -> Option<&'f Value> {
    let key = field.key;
    if field.when.is_missing() {
        context.diagnostics.error(
            field.key_span,
            format!("`{key}` has no `when`"),
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
            (
                context.tree.key_span_at(&keys, ""),
                "the same for every input",
            ),
            "this `when` checks nothing",
            format!("write `{key}: true` or `false` if that is meant; {WHEN_HINT}"),
        );
    }
    for unknown in find_unknown_keywords(when) {
        let hint = match unknown.suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => WHEN_HINT.to_owned(),
        };
        context.diagnostics.error(
            (
                context.tree.key_span_at(&keys, &unknown.pointer),
                same_for_all(key),
            ),
            format!(
                "`{}` isn't a JSON Schema keyword, so it checks nothing",
                unknown.key
            ),
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

// Compares a `when` with `input_schema`: names that the input doesn't have, and keywords for other types than it has, make
// a part of the schema mean the same for every call.

/// Keywords whose subschemas apply to the same value as the schema around them.
const IN_PLACE_APPLICATORS: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Compares a `when` with the schema of the input.
struct WhenChecker<'a, 'c> {
    input_schema: &'a Value,
    /// The key that has the `when`.
    key: &'static str,
    /// The keys that lead to `when` in the file.
    when_keys: &'a [&'a str],
    context: &'a mut CheckContext<'c>,
}

impl WhenChecker<'_, '_> {
    /// Checks `schema`, which is at `pointer` in `when` and applies to the input's value at `path`.
    fn check_subschema(&mut self, schema: &Value, pointer: &str, path: &[String]) {
        let Some(schema) = schema.as_object() else {
            return;
        };
        if !self.check_keyword_types(schema, pointer, path) {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        for name in required.filter(|name| !properties.is_some_and(|all| all.contains_key(*name))) {
            self.check_property(name, &format!("{pointer}/required"), path);
        }
        for (name, subschema) in properties.into_iter().flatten() {
            let pointer = format!("{pointer}/properties/{}", escape_pointer_token(name));
            self.check_property(name, &pointer, path);
            self.check_subschema(
                subschema,
                &pointer,
                &[path, std::slice::from_ref(name)].concat(),
            );
        }
        for keyword in IN_PLACE_APPLICATORS {
            match schema.get(keyword) {
                Some(Value::Array(all)) => {
                    for (index, subschema) in all.iter().enumerate() {
                        self.check_subschema(
                            subschema,
                            &format!("{pointer}/{keyword}/{index}"),
                            path,
                        );
                    }
                }
                Some(subschema) => {
                    self.check_subschema(subschema, &format!("{pointer}/{keyword}"), path);
                }
                None => {}
            }
        }
    }

    /// Reports keywords that don't apply to the type of the value, since they accept every value. Returns whether all
    /// of them apply.
    fn check_keyword_types(
        &mut self,
        schema: &Map<String, Value>,
        pointer: &str,
        path: &[String],
    ) -> bool {
        let Some(value) = find_listed(self.input_schema, path) else {
            return true;
        };
        let mut fits = true;
        for keyword in schema.keys() {
            let Some(kind) = type_of_keyword(keyword) else {
                continue;
            };
            if allows_type(value, kind) || kind == "number" && allows_type(value, "integer") {
                continue;
            }
            fits = false;
            let subject = match path {
                [] => "the input".to_owned(),
                path => format!("`{}`", path.join(".")),
            };
            let hint = match path {
                [] => WHEN_HINT.to_owned(),
                _ => "`const` and `enum` compare values of any type".to_owned(),
            };
            self.context.diagnostics.error(
                (
                    self.context
                        .tree
                        .key_span_at(self.when_keys, &format!("{pointer}/{keyword}")),
                    same_for_all(self.key),
                ),
                format!("`{keyword}` applies to values of type {kind}, and {subject} isn't one"),
                hint,
            );
        }
        fits
    }

    /// Reports the property `name` if the value at `path` can't have it.
    fn check_property(&mut self, name: &str, pointer: &str, path: &[String]) {
        let full_path = [path, &[name.to_owned()]].concat();
        let SchemaPresence::Absent { depth, known } = find_presence(self.input_schema, &full_path)
        else {
            return;
        };
        if depth < path.len() {
            return; // Already reported for an earlier name in the path.
        }
        let hint = match suggest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => WHEN_HINT.to_owned(),
        };
        self.context.diagnostics.error(
            (
                self.context.tree.key_span_at(self.when_keys, pointer),
                "not in `input_schema`",
            ),
            format!("the input has no `{}`", full_path.join(".")),
            hint,
        );
    }
}
