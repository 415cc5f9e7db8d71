//! Validates the input of a call: fills in defaults, and coerces it if that makes it valid.

use serde_json::Value;

use crate::check::coerce;
use crate::check::compiled_schemas::CompiledSchemas;
use crate::check::rejection;
use crate::json::Input;
use crate::json_schema::CompiledSchema;
use crate::types::{DescribeResult, ProblemDetail, Rejection, Tool, ToolsConfig};

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
    let schema = compile_input_schema(tool, compiled, tools)?;
    let filled = schema
        .fill_defaults(input)
        .map_err(|fault| rejection::unreadable_input(&fault))?;
    let before_coercion = filled.is_some().then(|| input.clone());
    let filled = filled.unwrap_or_else(|| input.clone());
    let value = filled.to_value();
    if schema.accepts_input(&filled, &value) {
        return Ok(ValidInput {
            input: filled,
            value,
            before_coercion,
            is_coerced: false,
        });
    }
    if let Some(valid) = schema.fill_valid_defaults(input) {
        return Ok(ValidInput {
            value: valid.to_value(),
            before_coercion: (valid.text() != input.text()).then(|| input.clone()),
            is_coerced: false,
            input: valid,
        });
    }
    let coerced = tool
        .coerce
        .then(|| coerce::coerce_input(&filled, &value, schema))
        .flatten();
    if let Some((coerced_input, value)) = coerced {
        return Ok(ValidInput {
            input: coerced_input,
            value,
            before_coercion: Some(input.clone()),
            is_coerced: true,
        });
    }
    let problems = schema.input_problems(&filled, &value);
    let problems = problems_of_model(problems, &value, &input.to_value());
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
    tools: &ToolsConfig,
) -> Result<&'c CompiledSchema, Rejection> {
    let schema = compiled
        .input
        .get_or_init(|| CompiledSchema::compile_with_formats(tool.input_schema(), tools.formats));
    let schema = schema.as_ref();
    schema.map_err(|faults| rejection::unusable_schema(faults))
}
