//! Reads tools.yaml again at a signal, while clients are connected.
//!
//! Calls that were checked before the reload run as they were checked. If anything is wrong with the new file, the old
//! definitions stay in force.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::serve::ServeArguments;
use crate::commands::serve::http::require_param_headers;
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_tools;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::{RunSession, ToolsInForce, describe_changes};
use toolq_core::types::{Tool, ToolsChange};
use toolq_mcp::server::{SharedCatalog, ToolCatalog};

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
        let change = self.in_force.change(tools, &self.served, &served);
        Ok(NewTools {
            catalog,
            served,
            change,
        })
    }
}
