//! For commands that run nothing else: runs the `describe` programs of tools, lists the tools of servers that aren't locked,
//! and warns about failures. Each program and server is queried at most once, when its answer is first needed.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::context::CommandContext;
use crate::output::{CommandError, StderrWriter};
use crate::session::runtime::{build_runtime, new_call_setup};
use crate::terminal::ProgressScreen;
use toolq_core::text::escape;
use toolq_core::types::{
    CallRef, DescribeResult, EmitError, Event, EventSink, ServerConfig, Tool, ToolsConfig,
    UnlockedServer,
};
use toolq_engine::{Engine, ServerAnnouncement, ServerLister, check_machine};

/// Runs the `describe` commands of tools, for commands that run nothing else.
pub struct ToolDescriber<'a> {
    runtime: Runtime,
    engine: Engine,
    context: &'a CommandContext,
}

impl<'a> ToolDescriber<'a> {
    /// Creates a describer without starting any process.
    ///
    /// # Errors
    /// The processes of a tool couldn't be ended, or the runtime can't be built.
    pub fn new(
        tools: &Arc<ToolsConfig>,
        context: &'a CommandContext,
    ) -> Result<Self, CommandError> {
        check_machine(tools)?;
        let setup = new_call_setup(Arc::clone(tools), None, context);
        Ok(Self {
            runtime: build_runtime(false)?,
            engine: Engine::new(setup.engine_settings()),
            context,
        })
    }

    /// Describes `tools` in parallel. Each result is stored in its tool.
    pub fn describe_tools(&self, tools: &[Arc<Tool>]) {
        let mut null_sink = NullSink;
        let mut sink = DescribeWarningSink::new(&mut null_sink, &self.context.stderr, None);
        let discovery = self.engine.schema_discovery();
        self.runtime.block_on(discovery.discover(tools, &mut sink));
    }

    /// Asks `servers` for their tools, all at the same time. Each answer is stored with its server.
    pub fn list_servers(&self, servers: &[Arc<UnlockedServer>]) {
        let mut null_sink = NullSink;
        let mut sink = DescribeWarningSink::new(&mut null_sink, &self.context.stderr, None);
        let discovery = self.engine.schema_discovery();
        let listing = discovery.list_servers(servers, &mut sink);
        self.runtime.block_on(listing);
    }

    /// Ends the servers that were asked.
    pub fn close(self) {
        // Nothing records what happened to them.
        let _ = self.engine.end_servers(&mut NullSink);
        self.engine.close();
    }
}

struct NullSink;

impl EventSink for NullSink {
    fn emit(&mut self, _: &[Event<'_>]) -> Result<(), EmitError> {
        Ok(())
    }
}

/// Warns when a tool can't describe itself, and passes all events on to another sink.
pub struct DescribeWarningSink<'a> {
    inner: &'a mut dyn EventSink,
    stderr: &'a StderrWriter,
    screen: Option<ProgressScreen>,
}

impl<'a> DescribeWarningSink<'a> {
    /// Creates a sink that forwards to `inner` and hides `screen` while it prints a warning.
    pub fn new(
        inner: &'a mut dyn EventSink,
        stderr: &'a StderrWriter,
        screen: Option<ProgressScreen>,
    ) -> Self {
        Self {
            inner,
            stderr,
            screen,
        }
    }

    fn warn_undescribed(&self, name: &str, why: &str) {
        self.warn(&format!(
            "{name} could not describe itself, so none of its calls will run: {why}"
        ));
    }

    fn warn_unlisted(&self, server: &UnlockedServer) {
        let name = &server.server.name;
        match server.listing() {
            Some(Err(why)) => self.warn(&format!(
                "the server {name} couldn't be asked for its tools, so none of them can be called: {}",
                escape(why)
            )),
            Some(Ok(listing)) => {
                for problem in &listing.problems {
                    self.warn(&format!("{name}: {}", escape(problem)));
                }
            }
            None => {}
        }
    }

    fn warn(&self, message: &str) {
        let warn = || self.stderr.print_warning(message);
        match &self.screen {
            Some(screen) => screen.suspend(warn),
            None => warn(),
        }
    }
}

impl EventSink for DescribeWarningSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let result = self.inner.emit(events);
        for event in events {
            if let Event::Described { tool, .. } = event
                && let Some(DescribeResult::Err(why)) = tool.describe_result()
            {
                self.warn_undescribed(&tool.name, why);
            }
            if let Event::ToolsListed { server, .. } = event {
                self.warn_unlisted(server);
            }
        }
        result
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.inner.shows_progress(call)
    }
}

// Asks the servers of tools.yaml what they announce, for commands that run nothing else.

/// What became of asking one server.
pub(crate) struct SurveyReply {
    pub(crate) server: Arc<ServerConfig>,
    /// What it announces and how long that took, or why nothing is known.
    pub(crate) result: Result<(Arc<ServerAnnouncement>, Duration), String>,
}

/// Asks `servers` at the same time, and ends them.
///
/// # Errors
/// The runtime can't be built.
pub(crate) fn survey_servers(
    servers: &[Arc<ServerConfig>],
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Vec<SurveyReply>, CommandError> {
    let settings = new_call_setup(Arc::clone(tools), None, context).engine_settings();
    let runtime = build_runtime(false)?;
    let lister = Arc::new(ServerLister::new(&settings));
    let questions = servers.iter().map(|server| {
        let (server, lister) = (Arc::clone(server), Arc::clone(&lister));
        runtime.spawn(async move {
            let result = lister.list(&server).await;
            SurveyReply { server, result }
        })
    });
    let questions: Vec<_> = questions.collect();
    let replies = runtime.block_on(async {
        let mut replies = Vec::new();
        for question in questions {
            // A panic has been reported.
            replies.extend(question.await.ok());
        }
        replies
    });
    lister.close();
    Ok(replies)
}
