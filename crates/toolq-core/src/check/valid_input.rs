//! Validates the input of a call: fills in defaults, and coerces it if that makes it valid.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use jsonschema::JsonType;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::check::rejection;
use crate::json::{Input, JsonEdits, JsonText, ParsedObject, pointer_tokens};
use crate::json_schema::{CompiledSchema, SchemaError, TypeError};
use crate::types::{
    ApprovalPolicy, DescribeResult, ProblemDetail, Rejection, SafetyPolicy, Tool, ToolsConfig,
};

/// An input that matches its schema.
pub(crate) struct ValidInput {
    pub(crate) input: Input,
    pub(crate) value: Value,
    /// What it was before coercion and defaults, if they changed it.
    pub(crate) before_coercion: Option<Input>,
    pub(crate) is_coerced: bool,
}

/// Returns the input to execute: with the schema's defaults, verbatim if it is valid then, without the defaults that
/// would make it invalid, or coerced if that makes it valid.
pub(crate) fn validate_input(
    tool: &Tool,
    compiled: &CompiledSchemas,
    input: &Input,
    tools: &ToolsConfig,
) -> Result<ValidInput, Rejection> {
    if let Some(DescribeResult::Err(why)) = tool.describe_result() {
        return Err(rejection::undescribed_tool(why));
    }
    if let Some(why) = tools.listing_failure(tool) {
        return Err(rejection::unlisted_tool(&why));
    }
    // Any object is accepted until the tool is described. Nothing may be compiled yet: the real schema couldn't
    // replace it.
    if tool.needs_describe() {
        return Ok(ValidInput {
            input: input.clone(),
            value: input.to_value(),
            before_coercion: None,
            is_coerced: false,
        });
    }
    let schema = compile_input_schema(tool, compiled)?;
    let filled = schema
        .fill_defaults(input)
        .map_err(|fault| rejection::unreadable_input(&fault))?;
    if filled.is_valid {
        return Ok(ValidInput {
            before_coercion: (filled.input.text() != input.text()).then(|| input.clone()),
            input: filled.input,
            value: filled.value,
            is_coerced: false,
        });
    }
    let coerced = tool
        .coerce
        .then(|| coerce_input(&filled.input, &filled.value, schema))
        .flatten();
    if let Some((coerced_input, value)) = coerced {
        return Ok(ValidInput {
            input: coerced_input,
            value,
            before_coercion: Some(input.clone()),
            is_coerced: true,
        });
    }
    let problems = schema.problem_details(&filled.value);
    let problems = problems_of_model(problems, &filled.value, &input.to_value());
    Err(rejection::invalid_input(problems))
}

/// Returns the problems without those of values that were filled in, unless there are no others.
fn problems_of_model(
    mut problems: Vec<ProblemDetail>,
    filled: &Value,
    sent: &Value,
) -> Vec<ProblemDetail> {
    let is_own = |problem: &ProblemDetail| {
        filled.pointer(&problem.path).is_none() || sent.pointer(&problem.path).is_some()
    };
    if problems.iter().any(is_own) {
        problems.retain(is_own);
    }
    problems
}

fn compile_input_schema<'c>(
    tool: &Tool,
    compiled: &'c CompiledSchemas,
) -> Result<&'c CompiledSchema, Rejection> {
    let schema = compiled
        .input
        .get_or_init(|| CompiledSchema::compile(tool.input_schema()));
    let schema = schema.as_ref();
    schema.map_err(|faults| rejection::unusable_schema(faults))
}

// Coerces an input that fails its schema only because of types: strings become the values they spell (`"true"`, `"3"`,
// a JSON array or object inside a string). Every other byte is kept. If the result isn't valid either, the input stays
// untouched.

/// Maximum number of passes: an array inside a string may itself hold numbers inside strings.
const MAX_ROUNDS: usize = 3;

/// Returns the coerced input and its tree, if that input is valid.
fn coerce_input(input: &Input, value: &Value, schema: &CompiledSchema) -> Option<(Input, Value)> {
    let mut type_errors = schema.type_errors(value);
    let mut candidate = input.clone();
    for _ in 0..MAX_ROUNDS {
        let filled = schema
            .fill_defaults(&coerce_once(&candidate, &type_errors)?)
            .ok()?;
        if filled.is_valid {
            return Some((filled.input, filled.value));
        }
        type_errors = schema.type_errors(&filled.value);
        candidate = filled.input;
    }
    None
}

/// Converts every value of the wrong type that can be converted; returns `None` if there is no such value.
fn coerce_once(input: &Input, type_errors: &[TypeError]) -> Option<Input> {
    let mut tree = CoercionTree::default();
    for type_error in type_errors {
        tree.insert(type_error);
    }
    let mut edits = JsonEdits::new(input.text());
    tree.collect_edits(input.json(), &mut edits);
    if edits.is_empty() {
        return None;
    }
    Input::parse(&edits.apply()).ok()
}

/// Type errors as a tree of keys and indices, so that the input is walked only once.
#[derive(Default)]
struct CoercionTree {
    types: Vec<JsonType>,
    children: BTreeMap<String, CoercionTree>,
}

impl CoercionTree {
    fn insert(&mut self, type_error: &TypeError) {
        let mut node = self;
        for key in pointer_tokens(&type_error.pointer) {
            node = node.children.entry(key).or_default();
        }
        node.types.extend(&type_error.allowed_types);
    }

    /// Collects the edits to `value`, in text order.
    fn collect_edits<'t>(&self, value: JsonText<'t>, edits: &mut JsonEdits<'t>) {
        if let Some(new) = convert_string(value, &self.types) {
            edits.replace(value, new);
        }
        if self.children.is_empty() {
            return;
        }
        for (key, member) in value.object().iter().flat_map(ParsedObject::members) {
            if let Some(child) = self.children.get(&**key) {
                child.collect_edits(*member, edits);
            }
        }
        for (index, item) in value.elements().into_iter().flatten().enumerate() {
            if let Some(child) = self.children.get(&index.to_string()) {
                child.collect_edits(item, edits);
            }
        }
    }
}

/// Returns the JSON that a string spells, if that is one of `types`.
fn convert_string(value: JsonText<'_>, types: &[JsonType]) -> Option<String> {
    let spelled = value.to_text()?;
    let inner = spelled.trim_matches([' ', '\t', '\r', '\n']);
    let first = inner.as_bytes().first()?;
    let wants = |kind| types.contains(&kind);
    let fits = match first {
        b't' | b'f' | b'T' | b'F' => {
            return parse_boolean(&spelled).filter(|_| wants(JsonType::Boolean));
        }
        b'[' => wants(JsonType::Array),
        b'{' => wants(JsonType::Object),
        b'-' | b'0'..=b'9' if inner.len() < spelled.len() => false,
        b'-' | b'0'..=b'9' if wants(JsonType::Number) => true,
        b'-' | b'0'..=b'9' => wants(JsonType::Integer) && !inner.contains(['.', 'e', 'E']),
        _ => false,
    };
    let is_json = fits && serde_json::from_str::<&RawValue>(inner).is_ok();
    is_json.then(|| inner.to_owned())
}

/// Parses a boolean, also in Python's spelling: a common slip of models.
fn parse_boolean(text: &str) -> Option<String> {
    match text {
        "true" | "True" => Some("true".to_owned()),
        "false" | "False" => Some("false".to_owned()),
        _ => None,
    }
}

// The schemas of tools, compiled when they are first needed.

/// Finds tools of a list, and has their schemas.
#[derive(Debug)]
pub(crate) struct ToolIndex {
    by_name: HashMap<String, usize>,
    schemas: Vec<CompiledSchemas>,
}

/// The compiled schemas of one tool.
#[derive(Debug, Default)]
pub(crate) struct CompiledSchemas {
    pub(crate) input: OnceLock<Result<CompiledSchema, Vec<SchemaError>>>,
    when: OnceLock<Option<CompiledSchema>>,
    approve_when: OnceLock<Option<CompiledSchema>>,
}

impl ToolIndex {
    pub(crate) fn new(tools: &[Arc<Tool>]) -> Self {
        let names = tools.iter().enumerate();
        Self {
            by_name: names
                .map(|(index, tool)| (tool.name.clone(), index))
                .collect(),
            schemas: tools.iter().map(|_| CompiledSchemas::default()).collect(),
        }
    }

    /// Finds a tool of the list that this was made for.
    pub(crate) fn find<'t>(
        &'t self,
        name: &str,
        tools: &'t [Arc<Tool>],
    ) -> Option<(&'t Arc<Tool>, &'t CompiledSchemas)> {
        let index = *self.by_name.get(name)?;
        Some((&tools[index], &self.schemas[index]))
    }
}

impl CompiledSchemas {
    /// Returns whether the input matches the `concurrency_safe.when` schema. A schema that doesn't compile matches
    /// nothing.
    pub(crate) fn matches_when(&self, safety: &SafetyPolicy, valid: &ValidInput) -> bool {
        let SafetyPolicy::When(schema) = safety else {
            return false;
        };
        let when = self
            .when
            .get_or_init(|| CompiledSchema::compile(schema).ok());
        when.as_ref().is_some_and(|when| when.accepts(&valid.value))
    }

    /// Returns whether a call with this input needs an approval. One whose schema doesn't compile does.
    pub(crate) fn needs_approval(&self, policy: &ApprovalPolicy, valid: &ValidInput) -> bool {
        let schema = match policy {
            ApprovalPolicy::Never => return false,
            ApprovalPolicy::Always => return true,
            ApprovalPolicy::When(schema) => schema,
        };
        let when = self
            .approve_when
            .get_or_init(|| CompiledSchema::compile(schema).ok());
        when.as_ref().is_none_or(|when| when.accepts(&valid.value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerce_text(schema: &Value, text: &str) -> Option<String> {
        let schema = CompiledSchema::compile(schema).unwrap();
        let input = Input::parse(text).unwrap();
        coerce_input(&input, &input.to_value(), &schema).map(|(input, _)| input.text().to_owned())
    }

    #[test]
    fn strings_become_the_values_they_spell() {
        let schema = json!({"properties": {
            "flag": {"type": "boolean"}, "n": {"type": "integer"}, "x": {"type": "number"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "level": {"type": "integer", "enum": [1, 2]},
            "deep": {"properties": {"a/b": {"items": {"type": "boolean"}}}}
        }});
        for (before, after) in [
            (r#"{"flag":"true"}"#, r#"{"flag":true}"#),
            (
                r#"{ "flag" : "False", "big": 12345678901234567890123 }"#,
                r#"{ "flag" : false, "big": 12345678901234567890123 }"#,
            ),
            (r#"{"n":"3", "z":-0}"#, r#"{"n":3, "z":-0}"#),
            (r#"{"x":"1.50"}"#, r#"{"x":1.50}"#),
            (r#"{"list":"[1, \"2\"]"}"#, r#"{"list":[1, 2]}"#),
            (r#"{"maybe":"7"}"#, r#"{"maybe":7}"#),
            (r#"{"level":"2"}"#, r#"{"level":2}"#),
            (
                r#"{"deep":{"a\/b":[true,"false"]},"n":"1"}"#,
                r#"{"deep":{"a\/b":[true,false]},"n":1}"#,
            ),
        ] {
            assert_eq!(coerce_text(&schema, before).as_deref(), Some(after));
        }
    }

    #[test]
    fn ambiguous_values_are_not_coerced() {
        let schema = json!({"properties": {
            "flag": {"type": "boolean"}, "n": {"type": "integer"}, "s": {"type": "string"},
            "maybe": {"type": ["integer", "null"]}, "list": {"type": "array"}, "o": {"type": "object"}
        }, "additionalProperties": false});
        for text in [
            r#"{"flag":"yes"}"#,
            r#"{"flag":"1"}"#,
            r#"{"flag":1}"#,
            r#"{"n":"3.0"}"#,
            r#"{"n":" 3"}"#,
            r#"{"n":"0x3"}"#,
            r#"{"n":"03"}"#,
            r#"{"n":""}"#,
            r#"{"s":3}"#,
            r#"{"s":null}"#,
            r#"{"maybe":"null"}"#,
            r#"{"list":"a,b"}"#,
            r#"{"list":"[1"}"#,
            r#"{"o":"{\"a\":1,\"a\":2}"}"#,
            r#"{"n":"3","unknown":1}"#,
            r#"{"n":"3","flag":"maybe"}"#,
        ] {
            assert_eq!(coerce_text(&schema, text), None, "{text}");
        }
    }
}
