//! The schema that inputs of a tool are held against, as its author wrote it.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json_schema::bundled;
use crate::tools_file::keys::ToolFile;
use crate::tools_file::resolve::context::Checks;
use crate::tools_file::spanned::Placed;

/// Leaves everything open.
static ANYTHING: Value = Value::Bool(true);

/// The schema of the tool's input, with the files that it refers to. Where there is none that could be used, one that
/// leaves all open, so that the templates over it are not reported too.
pub(crate) fn input_schema<'f>(
    name: &str,
    file: &'f Placed<ToolFile>,
    checks: &mut Checks<'_, '_>,
) -> Cow<'f, Value> {
    let setting = &file.value.input_schema;
    if file.value.describe.given().is_some() {
        if let Some(schema) = setting.given() {
            checks.findings.error(
                schema.key,
                format!("`{name}` has both `input_schema` and `describe`"),
                "which of them holds?",
                "leave one out: `describe` prints the schema",
            );
        }
        return Cow::Owned(json!({"type": "object"}));
    }
    let Some(schema) = setting.given() else {
        if setting.is_missing() {
            checks.findings.error(
                file.key,
                format!("`{name}` has no `input_schema`"),
                "",
                "a tool without inputs has `input_schema: {type: object, properties: {}}`",
            );
        }
        return Cow::Borrowed(&ANYTHING);
    };
    let keys = ["tools", name, "input_schema"];
    let mut whole = Cow::Borrowed(&schema.value);
    if checks.schema(&schema.value, &keys) {
        checks.misspelled(&schema.value, &keys);
        match bundled(&schema.value, checks.dir) {
            Ok(None) => {}
            Ok(Some(bundled)) => whole = Cow::Owned(bundled),
            Err(why) => checks.findings.warning(
                schema.key,
                format!(
                    "`toolq tools` prints a reference to a file that no model can follow: {why}"
                ),
                "",
                "copy what it refers to into `$defs`",
            ),
        }
    }
    if !takes_objects(&whole) {
        checks.findings.error(
            checks.tree.place(&keys, "/type"),
            "an input is an object, so its schema must say `type: object`",
            "",
            "inputs go into `properties`",
        );
    }
    whole
}

/// Whether a schema is one of objects, as the APIs demand; a reference may say it elsewhere.
fn takes_objects(schema: &Value) -> bool {
    match (schema, schema.get("type")) {
        (Value::Object(_), Some(kind)) => kind == "object",
        (Value::Object(keywords), None) => keywords.contains_key("$ref"),
        _ => false,
    }
}
