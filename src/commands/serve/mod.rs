//! `toolq serve`: the tools of tools.yaml as an MCP server, on stdin and stdout or over HTTP.
//!
//! Each call is a turn of its own, in the same session, engine and log in which `run` answers messages. So nothing runs
//! here that isn't checked, limited and recorded as there. A `transport` brings messages to a `served_client`, which speaks
//! the protocol; its calls are `open_calls` until the engine has answered them.

mod answer_content;
mod client_approver;
mod http;
mod open_calls;
mod selection;
mod served_client;
mod stdio;

use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::args::shared_flags::{BudgetFlags, LOG_FILE_HELP, WatchFlags};
use crate::args::values::{parse_http_address, parse_jobs};
use crate::commands::serve::answer_content::ProgressSink;
use crate::commands::serve::client_approver::ClientApprover;
use crate::commands::serve::http::{HttpListener, HttpService};
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::stdio::PipeTransport;
use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::{ClientOutput, CommandError, Exit, stdout};
use crate::session::{CallSource, RunSession};
use crate::settings::{ApprovalSettings, LogTarget, SessionSettings};
use toolq_core::check::CallChecker;
use toolq_core::types::{CallAnswer, CallRef, Event, EventSink, HaltCause, Tool};
use toolq_engine::RunControl;
use toolq_mcp::server::ServerSession;

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
        selection::select_tools(&tools, arguments, context)?;
    }
    let channel = open_channel(arguments, context)?;
    let approver = Arc::new(ClientApprover::default());
    let log = LogTarget::new(arguments.log.clone(), &context.environment);
    let (watch, budgets) = (&arguments.watch, &arguments.budgets);
    let settings = SessionSettings {
        jobs: arguments.jobs,
        approval: ApprovalSettings::Prompt(Arc::clone(&approver) as Arc<_>),
        // Over HTTP, nothing goes to stdout.
        prints_results: arguments.http.is_none(),
        ..SessionSettings::new(log.into(), watch, budgets, &context.environment)
    };
    let session = RunSession::begin(context, tools, &settings, CallSource::Client)?;
    let (session, result) = session.run_on_worker(move |session| {
        Box::pin(async move { serve(session, arguments, channel, &approver).await })
    });
    session.conclude(result, None)
}

/// Takes stdin, or begins to listen, so that an error is reported before anything runs.
fn open_channel(
    arguments: &ServeArguments,
    context: &CommandContext,
) -> Result<ClientChannel, CommandError> {
    if let Some(listener) = HttpListener::open(arguments, context)? {
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
    approver: &ClientApprover,
) -> Result<(), CommandError> {
    let served = complete_definitions(session, arguments).await?;
    let catalog = Arc::new(selection::build_catalog(&served)?);
    let mask = Arc::clone(&session.setup.mask);
    match channel {
        ClientChannel::Pipe(input) => {
            let (control, screen) = (session.engine.control(), session.sinks.screen());
            let output = ClientOutput::start(control, screen).map_err(CommandError::usage)?;
            let failure = output.failure();
            let protocol = ServerSession::new(catalog).with_mask(mask);
            let context = session.context;
            let transport = PipeTransport::new(input, output, protocol, &context.stderr);
            serve_clients(session, transport, Some("-"), approver).await?;
            if let Some(error) = failure.get() {
                return Err(CommandError::new(Exit::Output, error));
            }
            if session.engine.control().halt_cause() == Some(HaltCause::OutputLost) {
                return Err(CommandError::silent(Exit::Output));
            }
            Ok(())
        }
        ClientChannel::Http(listener) => {
            let transport = HttpService::start(listener, catalog, mask)?;
            serve_clients(session, transport, None, approver).await
        }
    }
}

/// Runs the calls that come by `transport`. `input` is what the log names as their input.
async fn serve_clients(
    session: &mut RunSession<'_>,
    mut transport: impl ClientTransport,
    input: Option<&str>,
    approver: &ClientApprover,
) -> Result<(), CommandError> {
    let control = session.engine.control();
    let (sender, turns) = mpsc::unbounded_channel();
    let checker = CallChecker::new(Arc::clone(&session.setup.tools));
    let calls = Arc::new(OpenCalls::new(checker, input.map(str::to_owned), sender));
    approver.connect(&calls, Arc::clone(&session.setup.mask));
    let mut sink = ProgressSink {
        sinks: &mut session.sinks,
        calls: &calls,
        mask: &session.setup.mask,
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
    let mut running = pin!(with_heartbeats(running, &calls));
    let received = tokio::select! {
        biased;
        () = &mut running => return Ok(()),
        received = transport.receive(&calls, &control) => received,
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
/// As [`selection::select_tools`].
async fn complete_definitions(
    session: &mut RunSession<'_>,
    arguments: &ServeArguments,
) -> Result<Vec<Arc<Tool>>, CommandError> {
    let (tools, context) = (Arc::clone(&session.setup.tools), session.context);
    session.list_unlocked_servers().await;
    let served = selection::select_tools(&tools, arguments, context)?;
    session.describe_all(&served).await;
    Ok(served)
}

// Ids that can't be guessed.

/// The random bytes of an id.
const ID_BYTES: usize = 16;

/// Returns an id that can't be guessed, or `None` if the system has no random numbers.
fn new_random_id() -> Option<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

// What clients are connected by.

/// Brings the messages of clients in, and the answers out.
trait ClientTransport {
    /// Handles messages until no more can come, or the run is stopped.
    ///
    /// # Errors
    /// Messages can't be read.
    fn receive(
        &mut self,
        calls: &Arc<OpenCalls>,
        control: &RunControl,
    ) -> impl Future<Output = Result<(), CommandError>>;

    /// Says on stderr what was odd, once no more messages come.
    fn report_end(&self);

    /// Waits until clients have read their last answers, but not for long.
    ///
    /// # Errors
    /// A client doesn't read them.
    fn finish(self) -> impl Future<Output = Result<(), CommandError>>;
}
