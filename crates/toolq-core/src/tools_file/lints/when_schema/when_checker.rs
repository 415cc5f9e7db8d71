//! Compares a `when` with `input_schema`: names that the input doesn't have, and keywords and values that its types don't
//! allow, make a part of the schema mean the same for every call.

use serde_json::{Map, Value};

use crate::json::escape_pointer_token;
use crate::json_schema::{CompiledSchema, type_of_keyword};
use crate::text::suggest_name;
use crate::tools_file::lints::when_schema::{WHEN_HINT, same_for_all};
use crate::tools_file::resolve::{CheckContext, SchemaPresence, allows_type, find_presence};

/// Keywords whose subschemas apply to the same value as the schema around them.
const IN_PLACE_APPLICATORS: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Compares a `when` with the schema of the input.
pub(super) struct WhenChecker<'a, 'c, 't> {
    pub(super) input_schema: &'a Value,
    /// The keys that lead to `when` in the file.
    pub(super) when_keys: [&'a str; 4],
    pub(super) context: &'a mut CheckContext<'c, 't>,
}

impl WhenChecker<'_, '_, '_> {
    /// Checks `schema`, which is at `pointer` in `when` and applies to the input's value at `path`.
    pub(super) fn check_subschema(&mut self, schema: &Value, pointer: &str, path: &[String]) {
        let Some(schema) = schema.as_object() else {
            return;
        };
        if !self.check_keyword_types(schema, pointer, path) {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !properties.is_some_and(|all| all.contains_key(*name))) {
            self.check_property(name, &format!("{pointer}/required"), path);
        }
        self.warn_of_impossible_values(schema, pointer, path);
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
        let (SchemaPresence::Required(value) | SchemaPresence::Optional(value)) =
            find_presence(self.input_schema, path)
        else {
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
                self.context
                    .tree
                    .key_span_at(&self.when_keys, &format!("{pointer}/{keyword}")),
                format!("`{keyword}` applies to values of type {kind}, and {subject} isn't one"),
                same_for_all(self.when_keys[2]),
                hint,
            );
        }
        fits
    }

    /// Warns if `schema` compares the value at `path` only with values that `input_schema` doesn't allow there.
    fn warn_of_impossible_values(
        &mut self,
        schema: &Map<String, Value>,
        pointer: &str,
        path: &[String],
    ) {
        let (keyword, values) = match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => ("const", std::slice::from_ref(value)),
            (None, Some(Value::Array(values))) => ("enum", values.as_slice()),
            _ => return,
        };
        let (SchemaPresence::Required(allowed) | SchemaPresence::Optional(allowed)) =
            find_presence(self.input_schema, path)
        else {
            return;
        };
        // A part that refers to another part of its schema can't be compiled by itself.
        let Ok(allowed) = CompiledSchema::compile(allowed) else {
            return;
        };
        if path.is_empty() || values.iter().any(|value| allowed.accepts(value)) {
            return;
        }
        let pointer = format!("{pointer}/{keyword}");
        self.context.diagnostics.warning(
            self.context.tree.key_span_at(&self.when_keys, &pointer),
            format!("no input has this `{}`", path.join(".")),
            "`input_schema` doesn't allow it",
            "write a value that `input_schema` allows",
        );
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
            self.context.tree.key_span_at(&self.when_keys, pointer),
            format!("the input has no `{}`", full_path.join(".")),
            "not in `input_schema`",
            hint,
        );
    }
}
