//! `toolq serve`: the tools of tools.yaml as an MCP server, on stdin and stdout or over HTTP.
//!
//! Each call is a turn of its own, in the same session, engine and log in which `run` answers messages. So nothing runs
//! here that isn't checked, limited and recorded as there. A `transport` brings messages to a `served_client`, which speaks
//! the protocol; its calls are `open_calls` until the engine has answered them.

mod answer_content;
mod client_questions;
mod http;
mod open_calls;
mod served_client;
mod stdio;

use std::fs::File;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use globset::Glob;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::args::{
    ApprovalSettings, BudgetFlags, LOG_FILE_HELP, WatchFlags, parse_http_address, parse_jobs,
};
use crate::commands::serve::http::{HttpListener, HttpService};
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::ClientTransport;
use crate::commands::serve::stdio::PipeTransport;
use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::{CommandError, Exit, start_client_output, stdout};
use crate::session::{CallSource, RunSession, RunSinks};
use crate::settings::{LogTarget, SessionSettings};
use toolq_core::answer;
use toolq_core::check::CallChecker;
use toolq_core::types::{
    CallAnswer, CallRef, DescribeResult, Effect, EmitError, Event, EventSink, HaltCause, Tool,
    ToolsConfig,
};
use toolq_engine::TurnRequest;
use toolq_mcp::server::{ServerSession, ToolCatalog};
use toolq_mcp::{Implementation, Tool as ListedTool};

#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Serve only tools whose name matches this glob; can be repeated [default: all]
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
    /// Serve only tools with `effect: read`
    #[arg(long)]
    read_only: bool,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    #[arg(
        long,
        help = LOG_FILE_HELP,
        value_name = "FILE",
        value_hint = ValueHint::FilePath
    )]
    pub log: Option<PathBuf>,
    /// Serve over HTTP at IP:PORT, path /mcp, instead of over stdin and stdout; port 0 is any free one
    #[arg(long, value_name = "ADDR", value_parser = parse_http_address)]
    pub http: Option<SocketAddr>,
    /// Environment variable with the token that every HTTP request must have; required unless ADDR is a loopback address
    #[arg(long, value_name = "NAME", requires = "http")]
    token_env: Option<String>,
    /// Also answer web pages of this origin, and requests to its host; can be repeated [default: those on this machine]
    #[arg(long, value_name = "URL", requires = "http")]
    pub origin: Vec<String>,
    #[command(flatten)]
    pub watch: WatchFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

/// How long calls may continue after the last client has disconnected. Clients wait two seconds before they send SIGTERM.
const END_OF_INPUT_GRACE: Duration = Duration::from_secs(1);

/// How often a client that requested progress is notified that its calls are still running. Many give up after a minute of
/// silence.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// What clients are going to be connected by.
enum ClientChannel {
    /// Stdin; the other half is stdout.
    Pipe(File),
    Http(HttpListener),
}

/// Serves the tools until the client closes stdin, or a signal comes.
///
/// # Errors
/// tools.yaml or a flag is invalid, or the log can't be used: then nothing ran.
pub fn serve_tools(
    arguments: &'static ServeArguments,
    context: &'static CommandContext,
) -> Result<Exit, CommandError> {
    if arguments.http.is_none() {
        stdout::check_open()?;
    }
    let token = arguments.token_env.as_deref();
    let tools = Arc::new(context.load_tools_to_run(token)?);
    if tools.unlocked.is_empty() {
        // Any error in the selection is reported before anything runs.
        select_tools(&tools, arguments, context)?;
    }
    let channel = open_channel(arguments, context)?;
    let (sender, turns) = mpsc::unbounded_channel();
    let calls = Arc::new(OpenCalls::new(
        CallChecker::new(Arc::clone(&tools)),
        Arc::new(tools.build_mask(&context.environment)),
        arguments.http.is_none().then(|| "-".to_owned()),
        sender,
    ));
    let log = LogTarget::new(arguments.log.clone(), &context.environment);
    let (watch, budgets) = (&arguments.watch, &arguments.budgets);
    let settings = SessionSettings {
        jobs: arguments.jobs,
        approval: ApprovalSettings::Prompt(Arc::clone(&calls) as Arc<_>),
        // Over HTTP, nothing goes to stdout.
        prints_results: arguments.http.is_none(),
        ..SessionSettings::new(log.into(), watch, budgets, &context.environment)
    };
    let session = RunSession::begin(context, tools, &settings, CallSource::Client)?;
    let (session, result) = session.run_on_worker(move |session| {
        Box::pin(async move { serve(session, arguments, channel, (&calls, turns)).await })
    });
    session.conclude(result, None)
}

/// Takes stdin, or begins to listen, so that an error is reported before anything runs.
fn open_channel(
    arguments: &ServeArguments,
    context: &CommandContext,
) -> Result<ClientChannel, CommandError> {
    if let Some(address) = arguments.http {
        let (token, origins) = (arguments.token_env.as_deref(), &arguments.origin);
        let listener = HttpListener::open(address, token, origins, &context.environment)?;
        return Ok(ClientChannel::Http(listener));
    }
    let input = stdin::take()?;
    if stdin::is_terminal() {
        context.stderr.print_note(
            "waiting for the messages of an MCP client on stdin; a client usually starts this command itself",
        );
    }
    Ok(ClientChannel::Pipe(input))
}

/// Serves clients until no more can connect.
async fn serve(
    session: &mut RunSession<'_>,
    arguments: &ServeArguments,
    channel: ClientChannel,
    (calls, turns): (&Arc<OpenCalls>, mpsc::UnboundedReceiver<TurnRequest>),
) -> Result<(), CommandError> {
    let served = complete_definitions(session, arguments).await?;
    let catalog = Arc::new(build_catalog(&served)?);
    match channel {
        ClientChannel::Pipe(input) => {
            let (control, screen) = (session.engine.control(), session.sinks.screen());
            let output = start_client_output(control, screen).map_err(CommandError::usage)?;
            let protocol = ServerSession::new(catalog).with_mask(Arc::clone(&calls.mask));
            let (context, to_client) = (session.context, output.clone());
            let transport = PipeTransport::new(
                input,
                to_client,
                protocol,
                Arc::clone(calls),
                &context.stderr,
            );
            serve_clients(session, transport, calls, turns).await?;
            if let Some(error) = output.error()
                && error.kind() != ErrorKind::BrokenPipe
            {
                let message = format!("stdout can't be written: {error}");
                return Err(CommandError::new(Exit::Output, message));
            }
            if session.engine.control().halt_cause() == Some(HaltCause::OutputLost) {
                return Err(CommandError::silent(Exit::Output));
            }
            Ok(())
        }
        ClientChannel::Http(listener) => {
            let transport = HttpService::start(listener, catalog, Arc::clone(calls))?;
            serve_clients(session, transport, calls, turns).await
        }
    }
}

/// Runs the calls that come by `transport`.
async fn serve_clients(
    session: &mut RunSession<'_>,
    mut transport: impl ClientTransport,
    calls: &OpenCalls,
    turns: mpsc::UnboundedReceiver<TurnRequest>,
) -> Result<(), CommandError> {
    let control = session.engine.control();
    let mut sink = ProgressSink {
        sinks: &mut session.sinks,
        calls,
    };
    let mut delivery = |call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink| {
        if calls.answer(call.turn, &answer) {
            // A log error is reported at the end.
            let _ = sink.emit(&[Event::ResultWritten { call }]);
        }
    };
    let running = session
        .engine
        .run_concurrent_turns(turns, &mut sink, &mut delivery);
    let mut running = pin!(with_heartbeats(running, calls));
    let received = tokio::select! {
        biased;
        () = &mut running => return Ok(()),
        received = transport.receive(&control) => received,
    };
    calls.close();
    transport.report_end();
    if timeout(END_OF_INPUT_GRACE, &mut running).await.is_err() {
        control.halt(HaltCause::ClientLeft);
        running.await;
    }
    transport.finish().await?;
    received
}

/// Passes all events on to the sinks of the session, and tells clients how far their calls are.
struct ProgressSink<'c> {
    sinks: &'c mut RunSinks,
    calls: &'c OpenCalls,
}

impl ProgressSink<'_> {
    fn report(&self, event: &Event<'_>) {
        match event {
            Event::Status {
                call,
                message,
                progress,
                ..
            } if message.is_some() || progress.is_some() => {
                let message = message.map(|message| self.calls.mask.apply(message));
                let message = message.as_deref();
                self.calls.report_progress(call, *progress, message);
            }
            Event::AgentProgress {
                call,
                turn,
                max_turns,
                ..
            } => {
                let message = format!("turn {turn}, at most {max_turns} turns");
                self.calls.report_progress(call, None, Some(&message));
            }
            _ => {}
        }
    }
}

impl EventSink for ProgressSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let result = self.sinks.emit(events);
        for event in events {
            self.report(event);
        }
        result
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.sinks.shows_progress(call) || self.calls.wants_progress(call)
    }
}

/// Runs `calls` to their end, and tells clients in the meantime that they are still running.
async fn with_heartbeats(running: impl Future<Output = ()>, calls: &OpenCalls) {
    let mut running = pin!(running);
    loop {
        tokio::select! {
            () = &mut running => return,
            () = sleep(HEARTBEAT_INTERVAL) => calls.send_heartbeats(),
        }
    }
}

/// Asks the servers that aren't locked for their tools, and runs the `describe` programs of the tools that are served: the
/// list needs their schemas. Returns the tools that are served.
///
/// # Errors
/// As [`select_tools`].
async fn complete_definitions(
    session: &mut RunSession<'_>,
    arguments: &ServeArguments,
) -> Result<Vec<Arc<Tool>>, CommandError> {
    let (tools, context) = (Arc::clone(&session.setup.tools), session.context);
    session.list_unlocked_servers().await;
    let served = select_tools(&tools, arguments, context)?;
    session.describe_all(&served).await;
    Ok(served)
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
