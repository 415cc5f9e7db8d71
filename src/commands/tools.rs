//! `toolq tools`: prints the tool declarations for a model.

use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use crate::args::{ToolsFormat, tools_format_parser};
use crate::context::CommandContext;
use crate::log_view::table::{left_aligned, render_rows, row_name};
use crate::output::{CommandError, Exit, stdout};
use crate::session::ToolDescriber;
use toolq_core::answer::{self, DeclarationFormat};
use toolq_core::json::indent_json;
use toolq_core::text::{escape, format_duration};
use toolq_core::types::{
    ApprovalPolicy, Backing, DescribeResult, SafetyPolicy, Sandbox, Tool, ToolsConfig,
};

#[derive(Debug, Args)]
pub struct ToolsArguments {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "anthropic", value_parser = tools_format_parser())]
    pub format: ToolsFormat,
}

/// Says which servers have tools that aren't listed, since nothing is started for that.
fn note_unlocked(tools: &ToolsConfig, context: &CommandContext) {
    for server in &tools.unlocked {
        let name = &server.server.name;
        context.stderr.print_note(&format!(
            "not all tools of {name} are listed, since the server isn't locked; `toolq servers{} {name}` asks it",
            context.tools_flag()
        ));
    }
}

/// Gets what tools and servers say about themselves. The tools of a server that can't be asked aren't declared.
///
/// # Errors
/// A tool can't be declared.
fn complete_definitions(
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let undescribed = tools.tools.iter().filter(|tool| tool.describe.is_some());
    let undescribed: Vec<Arc<Tool>> = undescribed.cloned().collect();
    if !undescribed.is_empty() || !tools.unlocked.is_empty() {
        let describer = ToolDescriber::new(tools, context)?;
        describer.list_servers(&tools.unlocked);
        describer.describe_tools(&undescribed);
        describer.close();
    }
    let failed_to_describe =
        |tool: &Tool| matches!(tool.describe_result(), Some(DescribeResult::Err(_)));
    if let Some(tool) = undescribed
        .iter()
        .find(|tool| tool.needs_describe() || failed_to_describe(tool))
    {
        let message = format!("{} can't be declared without its schema", tool.name);
        return Err(CommandError::usage(message));
    }
    let mut unlocked = tools.unlocked.iter();
    let are_all_known = unlocked.all(|server| matches!(server.listing(), Some(Ok(_))));
    Ok(Exit::problems_if(!are_all_known))
}

/// Prints the declarations.
///
/// # Errors
/// tools.yaml is invalid, a tool can't describe itself, or stdout can't be written.
pub fn print_declarations(
    arguments: &ToolsArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools()?);
    let is_terminal = stdout::is_terminal();
    let listing = match arguments.format {
        ToolsFormat::Declarations(format) => {
            let exit = complete_definitions(&tools, context)?;
            let text = answer::render_declarations(&tools, format);
            if is_terminal && format != DeclarationFormat::Markdown {
                stdout::write_line(&indent_json(&text))?;
            } else {
                stdout::write_line(text.trim_end())?;
            }
            return Ok(exit);
        }
        ToolsFormat::Table => to_table(&tools, context.stderr.is_stdout_colored()),
        ToolsFormat::Json => {
            let json = to_json(&tools).map_err(CommandError::usage)?;
            if is_terminal {
                indent_json(&json)
            } else {
                json
            }
        }
    };
    stdout::write_line(&listing)?;
    note_unlocked(&tools, context);
    Ok(Exit::Ok)
}

// What `toolq tools --format table` and `--format json` print: how each tool is declared to run.

/// One tool.
#[derive(Serialize)]
struct ToolListing<'t> {
    name: &'t str,
    kind: &'static str,
    effect: &'static str,
    /// `null` if it depends on the input.
    concurrency_safe: Option<bool>,
    decided_by: String,
    timeout_ms: u128,
    /// Attempts after the first.
    retries: u32,
    /// Whether its calls start only after an approval; `null` if that depends on the input.
    approve: Option<bool>,
    /// What its programs can reach; missing if they aren't confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<String>,
}

impl<'t> ToolListing<'t> {
    fn new(tool: &'t Tool) -> Self {
        let (concurrency_safe, decided_by) = describe_safety(&tool.safety);
        Self {
            name: &tool.name,
            kind: kind(tool.backing.as_ref()),
            effect: tool.effect.name(),
            concurrency_safe,
            decided_by,
            timeout_ms: tool.timeout.after.as_millis(),
            retries: tool.retry.max_retries,
            approve: match tool.approve {
                ApprovalPolicy::Never => Some(false),
                ApprovalPolicy::Always => Some(true),
                ApprovalPolicy::When(_) => None,
            },
            sandbox: find_sandbox(tool).map(Sandbox::describe),
        }
    }

    fn approval(&self) -> &'static str {
        match self.approve {
            Some(true) => "always",
            Some(false) => "",
            None => "by input",
        }
    }

    fn safety(&self) -> String {
        let word = match self.concurrency_safe {
            Some(true) => "yes",
            Some(false) => "no",
            None => "by input",
        };
        format!("{word}: {}", self.decided_by)
    }
}

/// Renders an array with an object per tool, in the order of the file.
pub(crate) fn to_json(tools: &ToolsConfig) -> serde_json::Result<String> {
    let listings = tools.tools.iter().map(|tool| ToolListing::new(tool));
    serde_json::to_string(&listings.collect::<Vec<_>>())
}

/// Renders a row per tool, in the order of the file.
pub(crate) fn to_table(tools: &ToolsConfig, color: bool) -> String {
    let listings = tools.tools.iter().map(|tool| ToolListing::new(tool));
    let listings: Vec<ToolListing<'_>> = listings.collect();
    let column = |title, cell: &dyn Fn(&ToolListing<'_>) -> String| {
        left_aligned(title, listings.iter().map(cell).collect())
    };
    let timeouts = tools
        .tools
        .iter()
        .map(|tool| format_duration(tool.timeout.after));
    let mut columns = vec![
        column("tool", &|tool| row_name(Some(tool.name))),
        column("kind", &|tool| tool.kind.to_owned()),
        column("effect", &|tool| tool.effect.to_owned()),
        column("in parallel", &|tool| tool.safety()),
        left_aligned("timeout", timeouts.collect()),
        column("retries", &|tool| tool.retries.to_string()),
    ];
    if listings.iter().any(|tool| tool.approve != Some(false)) {
        columns.push(column("approval", &|tool| tool.approval().to_owned()));
    }
    if listings.iter().any(|tool| tool.sandbox.is_some()) {
        columns.push(column("sandbox", &|tool| {
            escape(tool.sandbox.as_deref().unwrap_or_default()).into_owned()
        }));
    }
    render_rows(&columns, color)
}

/// Returns the sandbox of the program that serves the calls of a tool.
fn find_sandbox(tool: &Tool) -> Option<&Sandbox> {
    let command = match &tool.backing {
        Some(Backing::Command(command)) => Some(command),
        Some(Backing::Mcp(mcp)) => mcp.server.program(),
        _ => None,
    };
    command?.sandbox.as_ref()
}

fn kind(backing: Option<&Backing>) -> &'static str {
    match backing {
        Some(Backing::Command(_)) => "command",
        Some(Backing::Http(_)) => "http",
        Some(Backing::Agent(_)) => "agent",
        Some(Backing::Mcp(_)) => "mcp",
        Some(Backing::Builtin(_)) => "builtin",
        Some(Backing::Host) => "host",
        None => "none",
    }
}

/// Returns whether calls are concurrency-safe, and what decides it, in the words of a plan.
fn describe_safety(policy: &SafetyPolicy) -> (Option<bool>, String) {
    match policy {
        SafetyPolicy::Declared(safe) => (Some(*safe), "concurrency_safe".to_owned()),
        SafetyPolicy::When(_) => (None, "concurrency_safe.when".to_owned()),
        SafetyPolicy::Rule(rule) => (Some(rule.safe), format!("rule {}", rule.glob)),
        SafetyPolicy::Effect(safe) => (Some(*safe), "effect".to_owned()),
        SafetyPolicy::Default => (Some(false), "default".to_owned()),
    }
}
