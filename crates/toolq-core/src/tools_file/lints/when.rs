//! `concurrency_safe: {when: SCHEMA}`: what it says must be about the input. JSON Schema lets pass what it doesn't know,
//! and a schema that lets everything pass would let every call run beside others.

use serde_json::{Map, Value};

use crate::json_schema::{escaped, strays, type_of};
use crate::text::nearest;
use crate::tools_file::keys::{SafetyForm, ToolFile};
use crate::tools_file::resolve::{Checks, Declared, declared, may_be};
use crate::tools_file::spanned::Placed;

/// Keywords whose schemas are of the same value as the one around them.
const SAME_VALUE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

const EXAMPLE: &str = "`when` is a schema of the whole input: `{properties: {query: {pattern: \"^SELECT [^;]*$\"}}, required: [query]}`";

/// Checks the schema of `concurrency_safe.when` of the tool `name`, whose inputs `input` describes.
pub(crate) fn check(
    name: &str,
    file: &Placed<ToolFile>,
    input: &Value,
    checks: &mut Checks<'_, '_>,
) {
    let Some(Placed {
        key,
        value: SafetyForm::Table(table),
        ..
    }) = file.value.concurrency_safe.given()
    else {
        return;
    };
    if table.when.is_missing() {
        checks.findings.error(
            *key,
            "`concurrency_safe` has no `when`",
            "",
            "write `true`, `false`, or `{when: SCHEMA}` over the input",
        );
    }
    let Some(when) = table.when.value() else {
        return;
    };
    let keys = ["tools", name, "concurrency_safe", "when"];
    if !checks.schema(when, &keys) {
        return;
    }
    if matches!(when, Value::Bool(_)) || when.as_object().is_some_and(Map::is_empty) {
        checks.findings.error(
            checks.tree.key_place(&keys, ""),
            "this `when` looks at nothing",
            "the same for every input",
            format!("write `concurrency_safe: true` or `false` if that is meant; {EXAMPLE}"),
        );
    }
    for stray in strays(when, checks.dir) {
        let hint = match stray.meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => EXAMPLE.to_owned(),
        };
        checks.findings.error(
            checks.tree.key_place(&keys, &stray.pointer),
            format!(
                "`{}` is no keyword of JSON Schema, so it checks nothing",
                stray.key
            ),
            "every input would pass",
            hint,
        );
    }
    let mut about = About {
        input,
        keys,
        checks,
    };
    about.value(when, "", &[]);
}

/// Compares a `when` with the schema of the input.
struct About<'a, 'c, 't> {
    input: &'a Value,
    /// Where `when` stands.
    keys: [&'a str; 4],
    checks: &'a mut Checks<'c, 't>,
}

impl About<'_, '_, '_> {
    /// `schema` stands at `pointer` and is about the input's value at `path`.
    fn value(&mut self, schema: &Value, pointer: &str, path: &[String]) {
        let Some(schema) = schema.as_object() else {
            return;
        };
        if !self.fits(schema, pointer, path) {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !properties.is_some_and(|all| all.contains_key(*name))) {
            self.name(name, &format!("{pointer}/required"), path);
        }
        for (name, below) in properties.into_iter().flatten() {
            let pointer = format!("{pointer}/properties/{}", escaped(name));
            self.name(name, &pointer, path);
            self.value(
                below,
                &pointer,
                &[path, std::slice::from_ref(name)].concat(),
            );
        }
        for keyword in SAME_VALUE {
            match schema.get(keyword) {
                Some(Value::Array(all)) => {
                    for (index, below) in all.iter().enumerate() {
                        self.value(below, &format!("{pointer}/{keyword}/{index}"), path);
                    }
                }
                Some(below) => self.value(below, &format!("{pointer}/{keyword}"), path),
                None => {}
            }
        }
    }

    /// Reports keywords about another type than the value's: they let every value pass. Whether there is none.
    fn fits(&mut self, schema: &Map<String, Value>, pointer: &str, path: &[String]) -> bool {
        let (Declared::Always(value) | Declared::Optional(value)) = declared(self.input, path)
        else {
            return true;
        };
        let mut fits = true;
        for keyword in schema.keys() {
            let Some(kind) = type_of(keyword) else {
                continue;
            };
            if may_be(value, kind) || kind == "number" && may_be(value, "integer") {
                continue;
            }
            fits = false;
            let subject = match path {
                [] => "the input".to_owned(),
                path => format!("`{}`", path.join(".")),
            };
            let hint = match path {
                [] => EXAMPLE.to_owned(),
                _ => "`const` and `enum` compare values of any type".to_owned(),
            };
            self.checks.findings.error(
                self.checks
                    .tree
                    .key_place(&self.keys, &format!("{pointer}/{keyword}")),
                format!("`{keyword}` is about values of type {kind}, and {subject} is none"),
                "every input would pass",
                hint,
            );
        }
        fits
    }

    /// Reports a `name` that the value at `path` can't have.
    fn name(&mut self, name: &str, pointer: &str, path: &[String]) {
        let whole = [path, &[name.to_owned()]].concat();
        let Declared::Never { depth, known } = declared(self.input, &whole) else {
            return;
        };
        if depth < path.len() {
            return; // It was said of the name before.
        }
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => EXAMPLE.to_owned(),
        };
        self.checks.findings.error(
            self.checks.tree.key_place(&self.keys, pointer),
            format!("the input has no `{}`", whole.join(".")),
            "not in `input_schema`",
            hint,
        );
    }
}
