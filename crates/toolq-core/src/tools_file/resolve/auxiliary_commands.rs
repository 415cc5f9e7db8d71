//! Resolves the commands that a tool has besides the one for its calls: `describe` and `probe`.

use std::sync::Arc;

use serde_json::json;

use crate::tools_file::keys::ToolFile;
use crate::tools_file::resolve::command;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::sandbox::without_values;
use crate::types::{Backing, CommandBacking, DescribeCommand, Effect, StdinSource, Template};

/// Returns the command that prints the tool's schema, if the tool describes itself.
pub(crate) fn resolve_describe(
    tool: &ToolFile,
    backing: Option<&Backing>,
    context: &mut ToolContext<'_, '_>,
) -> Option<Box<DescribeCommand>> {
    let argv = tool.describe.spanned()?;
    let tool_command = match backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    // The command runs before any call, so its arguments can't contain values from an input.
    let empty_schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let sandbox = context.sandbox.as_ref().map(without_values);
    let mut context = ToolContext {
        schema: &empty_schema,
        why_no_input: Some("`describe` runs before any call, so there is no input yet"),
        root: context.root,
        paths: Vec::new(),
        has_no_paths: false,
        command_defaults: context.command_defaults,
        sandbox,
        wrapper: context.wrapper.clone(),
        diagnostics: context.diagnostics,
    };
    let mut command = command::resolve_auxiliary_command(argv, tool_command, &mut context)?;
    command.stdin = StdinSource::None;
    // The same goes for variables, so those with a value from the input are left out.
    let has_no_values = |template: &Template| {
        template
            .parts
            .iter()
            .all(|part| part.as_segment().is_some())
    };
    command.env.retain(|(_, template)| has_no_values(template));
    Some(Box::new(DescribeCommand {
        command,
        result: Arc::default(),
    }))
}

/// Returns the command that tells whether an interrupted call did its work. Only `write` tools need one: calls
/// of other tools simply run again.
pub(crate) fn resolve_probe(
    tool: &ToolFile,
    effect: Effect,
    backing: Option<&Backing>,
    context: &mut ToolContext<'_, '_>,
) -> Option<CommandBacking> {
    let argv = tool.probe.spanned()?;
    if effect != Effect::Write {
        context.diagnostics.warning(
            argv.key_span,
            format!(
                "this `probe` never runs: the tool's effect is `{}`",
                effect.name()
            ),
            "",
            "such a call simply runs again; remove the probe",
        );
    }
    let tool_command = match backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    command::resolve_auxiliary_command(argv, tool_command, context)
}
