//! Reads tools.yaml again at a signal, while clients are connected.
//!
//! Calls that were checked before run as they were checked. Whatever is wrong with the new file, the old definitions stay
//! in force.

mod tool_changes;

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolq_mcp::server::{SharedCatalog, ToolCatalog};

use crate::args::ServeArguments;
use crate::commands::serve::http::require_param_headers;
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::reload::tool_changes::{ToolChanges, describe_changes};
use crate::commands::serve::served_tools;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::{RunSession, require_trackable_tools};
use redact::Mask;
use toolq_core::text::escape;
use toolq_core::types::{DescribeCommand, Tool, ToolsChange, ToolsConfig, UnlockedServer};

/// Reads the tools again whenever the signal comes.
pub(crate) struct ToolsReloader<'a> {
    signal: Signal,
    context: &'a CommandContext,
    arguments: &'a ServeArguments,
    mask: Arc<Mask>,
    /// What is in force.
    tools: Arc<ToolsConfig>,
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
            mask: Arc::clone(&session.mask),
            tools: Arc::clone(&session.tools),
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
        self.tools = Arc::clone(&new.change.tools);
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
        self.require_same_setting(&tools)?;
        require_trackable_tools(&tools)?;
        for tool in &mut tools.tools {
            self.keep_description(tool);
        }
        for server in &tools.unlocked {
            self.keep_listing(server);
        }
        let mut served = served_tools::select_tools(&tools, self.arguments, self.context)?;
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
        let catalog = served_tools::build_catalog(&served)?;
        if self.arguments.http.is_some() {
            require_param_headers(&catalog)?;
        }
        let ToolChanges {
            added,
            removed,
            changed,
        } = ToolChanges::between(&self.served, &served);
        let change = ToolsChange {
            path: self.context.tools_path.display().to_string(),
            tools: Arc::new(tools),
            added,
            removed,
            changed,
        };
        Ok(NewTools {
            catalog,
            served,
            change,
        })
    }

    /// # Errors
    /// Something has changed that is fixed when the server starts.
    fn require_same_setting(&self, tools: &ToolsConfig) -> Result<(), CommandError> {
        let refuse = |what: &str| {
            let message = format!("{what} can't change while the server runs");
            Err(CommandError::usage(message).with_hint("start it again"))
        };
        if tools.root != self.tools.root {
            return refuse("`root`");
        }
        if self.arguments.jobs.is_none() && tools.concurrency != self.tools.concurrency {
            return refuse("`concurrency`");
        }
        if tools.env_file != self.tools.env_file {
            return refuse("what `env_file` says");
        }
        // What was masked at the start stays masked, and nothing else is.
        let is_new_secret = |name: &&String| {
            let value = self.context.environment.get_os(name.as_str());
            let value = value.unwrap_or_default().to_string_lossy();
            let value = value.trim();
            value.len() >= Mask::MIN_SECRET_BYTES && self.mask.apply(value) == value
        };
        match tools.secrets.iter().find(is_new_secret) {
            Some(name) => refuse(&format!("what is secret ({name} is new)")),
            None => Ok(()),
        }
    }

    /// Lets what a server has announced hold on, if it would be reached as before. It isn't asked, since calls wait.
    fn keep_listing(&self, server: &UnlockedServer) {
        let mut old = self.tools.unlocked.iter();
        let old = old.find(|old| old.server.is_same_as(&server.server));
        match old.and_then(|old| old.listing()) {
            Some(Ok(listing)) => {
                server.set_announced(Ok((listing.lock.clone(), Vec::new())));
            }
            Some(Err(why)) => server.set_announced(Err(why.to_owned())),
            None => {
                let warning = format!(
                    "the tools of the server {} aren't served until toolq is started again: tools.lock doesn't have it",
                    server.server.name
                );
                self.context.stderr.print_warning(&warning);
            }
        }
        if let Some(Err(why)) = server.listing() {
            let warning = format!(
                "the tools of the server {} aren't served: {}",
                server.server.name,
                escape(why)
            );
            self.context.stderr.print_warning(&warning);
        }
    }

    /// Gives a tool the description that it gave itself before, if the same program would be asked.
    fn keep_description(&self, tool: &mut Arc<Tool>) {
        let command = |describe: &DescribeCommand| format!("{:?}", describe.command);
        let old = self.tools.get(&tool.name);
        let old = old.and_then(|old| old.describe.as_deref());
        if let (Some(old), Some(new)) = (old, tool.describe.as_deref())
            && command(old) == command(new)
        {
            let described = Box::new(old.clone());
            Arc::make_mut(tool).describe = Some(described);
        }
    }
}
