//! Reads tools.yaml again at a signal, while clients are connected.
//!
//! Calls that were checked before the reload run as they were checked. If anything is wrong with the new file, the old
//! definitions stay in force.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use globset::Glob;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::serve::ServeArguments;
use crate::commands::serve::http::require_param_headers;
use crate::commands::serve::open_calls::OpenCalls;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::{RunSession, ToolsInForce, describe_changes};
use toolq_core::answer;
use toolq_core::types::{DescribeResult, Effect, Tool, ToolsChange, ToolsConfig};
use toolq_mcp::server::{SharedCatalog, ToolCatalog};
use toolq_mcp::{Implementation, Tool as ListedTool};

/// Reads the tools again whenever the signal comes.
pub(crate) struct ToolsReloader<'a> {
    signal: Signal,
    context: &'a CommandContext,
    arguments: &'a ServeArguments,
    in_force: ToolsInForce<'a>,
    served: Vec<Arc<Tool>>,
    /// `None` until clients can connect.
    catalog: Option<SharedCatalog>,
}

/// Tools that can come into force.
struct NewTools {
    catalog: ToolCatalog,
    served: Vec<Arc<Tool>>,
    change: ToolsChange,
}

impl<'a> ToolsReloader<'a> {
    /// Catches the signal from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The signal can't be caught.
    pub(crate) fn new(
        session: &RunSession<'a>,
        arguments: &'a ServeArguments,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            signal: signal(SignalKind::user_defined1()).map_err(CommandError::usage)?,
            context: session.context,
            arguments,
            in_force: ToolsInForce::new(session, arguments.jobs.is_some()),
            served: Vec::new(),
            catalog: None,
        })
    }

    /// Replaces this catalog, which has these tools, when the tools change.
    pub(crate) fn with_catalog(self, catalog: SharedCatalog, served: Vec<Arc<Tool>>) -> Self {
        Self {
            catalog: Some(catalog),
            served,
            ..self
        }
    }

    /// Reads the tools again at each signal.
    pub(crate) async fn reload_at_signals(&mut self, calls: &OpenCalls) -> Infallible {
        while self.signal.recv().await.is_some() {
            let stderr = &self.context.stderr;
            match self.read_tools() {
                Ok(new) => {
                    stderr.print_note(&describe_changes(&new.change));
                    self.put_into_force(new, calls);
                }
                Err(failure) => {
                    let message = format!("{}; the tools stay as they were", failure.message);
                    stderr.print_error(&CommandError { message, ..failure });
                }
            }
        }
        pending().await
    }

    fn put_into_force(&mut self, new: NewTools, calls: &OpenCalls) {
        self.in_force.replace(&new.change.tools);
        self.served = new.served;
        calls.change_tools(new.change);
        if let Some(catalog) = &self.catalog {
            catalog.replace(new.catalog);
        }
    }

    /// # Errors
    /// Why the tools can't come into force.
    fn read_tools(&self) -> Result<NewTools, CommandError> {
        let token = self.arguments.token_env.as_deref();
        let mut tools = self.context.reload_tools(token)?;
        self.in_force.admit(&mut tools)?;
        let mut served = select_tools(&tools, self.arguments, self.context)?;
        // A `describe` program would have to run in between, while calls wait.
        served.retain(|tool| {
            if tool.needs_describe() {
                let warning = format!(
                    "{} isn't served until the server is started again: it has to describe itself",
                    tool.name
                );
                self.context.stderr.print_warning(&warning);
            }
            !tool.needs_describe()
        });
        let catalog = build_catalog(&served)?;
        if self.arguments.http.is_some() {
            require_param_headers(&catalog)?;
        }
        let change = self.in_force.change(tools, &self.served, &served);
        Ok(NewTools {
            catalog,
            served,
            change,
        })
    }
}

// Which tools are served, and how the list describes them.

/// The longest name that all clients accept.
const MAX_NAME_BYTES: usize = 64;

/// Selects the tools that are served, in the order of the file, and then those that servers have announced. Those without a
/// backing aren't, since their calls would only fail.
///
/// # Errors
/// A glob is invalid, no tool is left, or clients would refuse the name of a tool.
pub(crate) fn select_tools(
    tools: &ToolsConfig,
    arguments: &ServeArguments,
    context: &CommandContext,
) -> Result<Vec<Arc<Tool>>, CommandError> {
    let globs = arguments.only.iter().map(|glob| {
        let compiled = Glob::new(glob).map(|glob| glob.compile_matcher());
        compiled.map_err(|error| CommandError::usage(format!("--only {glob}: {error}")))
    });
    let globs = globs.collect::<Result<Vec<_>, _>>()?;
    let is_selected = |tool: &Arc<Tool>| {
        let is_named = globs.is_empty() || globs.iter().any(|glob| glob.is_match(&tool.name));
        let is_known = !tool.awaits_list;
        is_known && is_named && (!arguments.read_only || tool.effect == Effect::Read)
    };
    let (served, without_backing): (Vec<_>, Vec<_>) = tools
        .known_tools()
        .into_iter()
        .filter(is_selected)
        .partition(|tool| tool.backing.is_some());
    for tool in without_backing {
        let note = format!("{} isn't served: nothing runs it", tool.name);
        context.stderr.print_note(&note);
    }
    if served.is_empty() {
        return Err(CommandError::usage("no tool is left to serve")
            .with_hint("`toolq tools --format table` lists the tools and their effects"));
    }
    let mut names = served.iter().map(|tool| &tool.name);
    if let Some(name) = names.find(|name| !is_accepted_name(name)) {
        let message = format!("clients refuse the whole list because of the name {name}");
        return Err(CommandError::usage(message).with_hint(
            "rename the tool (up to 64 letters, digits, `_` and `-`), or leave it out with `--only`",
        ));
    }
    Ok(served)
}

fn is_accepted_name(name: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    name.len() <= MAX_NAME_BYTES && name.bytes().all(is_accepted)
}

/// Builds the list of tools. Those that failed to describe themselves are left out.
///
/// # Errors
/// A declaration isn't one of MCP.
pub(crate) fn build_catalog(served: &[Arc<Tool>]) -> Result<ToolCatalog, CommandError> {
    let is_usable =
        |tool: &&Arc<Tool>| !matches!(tool.describe_result(), Some(DescribeResult::Err(_)));
    let listed = served.iter().filter(is_usable).map(|tool| list_tool(tool));
    let listed = listed.collect::<Result<Vec<ListedTool>, _>>();
    let listed = listed.map_err(|error| {
        CommandError::usage(format!("a tool can't be described to clients: {error}"))
    })?;
    let server = Implementation {
        name: "toolq".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(ToolCatalog::new(server, None, listed))
}

fn list_tool(tool: &Tool) -> serde_json::Result<ListedTool> {
    let mut declaration = answer::mcp_declaration(tool);
    // MCP requires it, and every input is an object anyway.
    match &mut declaration["inputSchema"] {
        Value::Object(schema) => {
            schema.entry("type").or_insert_with(|| "object".into());
        }
        schema => *schema = json!({"type": "object"}),
    }
    serde_json::from_str(&declaration.to_string())
}
