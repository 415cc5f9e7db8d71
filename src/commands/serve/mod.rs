//! `toolq serve`: the tools of tools.yaml as an MCP server over stdin and stdout.
//!
//! Each call is a turn of its own, in the same session, engine and log in which `run` answers messages. So nothing runs
//! here that isn't checked, limited and recorded as there.

mod answer_content;
mod call_progress;
mod client_configuration;
mod client_connection;
pub(crate) mod client_output;
mod client_requests;
mod served_tools;

use std::fs::File;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::args::ServeArguments as Arguments;
use crate::commands::serve::client_connection::{
    AnswerSender, ClientConnection, ProgressSink, lock,
};
use crate::commands::serve::client_output::ClientOutput;
use crate::commands::serve::client_requests::ClientRequests;
use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::session::{LogSubject, RunSession};
use crate::settings::SessionSettings;
use toolq_core::types::{HaltCause, Tool};

/// How long calls may go on after the client has closed stdin. Clients wait two seconds before they send SIGTERM.
const END_OF_INPUT_GRACE: Duration = Duration::from_secs(1);

/// How long a client may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// How often a client that wants to know hears that its calls are still running. Many give up after a minute of silence.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Serves the tools until the client closes stdin, or a signal comes.
///
/// # Errors
/// tools.yaml or a flag is invalid, or the log can't be used: then nothing ran.
pub fn serve_tools(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    let tools = Arc::new(context.load_tools()?);
    let served = served_tools::select_tools(&tools, arguments, context)?;
    if let Some(client) = arguments.print {
        let configuration =
            client_configuration::client_configuration(client, arguments, &tools, context)?;
        stdout::write_line(&configuration.text)?;
        let note = format!("for {}", configuration.file);
        context.stderr.print_note(&note);
        return Ok(Exit::Ok);
    }
    let input = stdin::take()?;
    if stdin::is_terminal() {
        context.stderr.print_note(
            "waiting for the messages of an MCP client on stdin; a client usually starts this command itself",
        );
    }
    let settings = SessionSettings::of_serve(arguments, &context.environment);
    let mut session = RunSession::begin(context, tools, &settings, LogSubject::Client)?;
    let result = session.block_on(async |session| serve_client(session, &served, input).await);
    let exit = session.finish(result.as_ref().err().map(|failure| failure.exit));
    result.map_err(|failure| CommandError { exit, ..failure })?;
    Ok(exit)
}

/// Serves one client until it leaves.
async fn serve_client(
    session: &mut RunSession<'_>,
    served: &[Arc<Tool>],
    input: File,
) -> Result<(), CommandError> {
    describe_tools(session, served).await;
    let catalog = Arc::new(served_tools::build_catalog(served)?);
    let (control, screen) = (session.engine.control(), session.sinks.screen());
    let output = ClientOutput::start(control.clone(), screen).map_err(CommandError::usage)?;
    let connection = ClientConnection::new(catalog, Arc::clone(&session.mask), output.clone());
    let connection = Mutex::new(connection);
    let (sender, turns) = mpsc::unbounded_channel();
    let RunSession {
        context,
        engine,
        sinks,
        checker,
        mask,
        ..
    } = session;
    let mut requests = ClientRequests::new(input, &connection, checker, &context.stderr, sender);
    let mut sink = ProgressSink::new(sinks, &connection, mask);
    let mut delivery = AnswerSender::new(&connection);
    let calls = engine.run_concurrent_turns(turns, &mut sink, &mut delivery);
    let mut calls = pin!(with_heartbeats(calls, &connection));
    let read = tokio::select! {
        biased;
        () = &mut calls => return Ok(()),
        read = requests.forward(&control, &output) => read,
    };
    requests.close();
    if timeout(END_OF_INPUT_GRACE, &mut calls).await.is_err() {
        control.halt(HaltCause::ClientLeft);
        calls.await;
    }
    match timeout(OUTPUT_GRACE, output.wait_until_written()).await {
        Ok(()) => read,
        Err(_) => Err(CommandError::new(
            Exit::Output,
            "the client doesn't read its answers",
        )),
    }
}

/// Runs `calls` to their end, and tells the client in the meantime that they are still running.
async fn with_heartbeats(calls: impl Future<Output = ()>, connection: &Mutex<ClientConnection>) {
    let mut calls = pin!(calls);
    loop {
        tokio::select! {
            () = &mut calls => return,
            () = sleep(HEARTBEAT_INTERVAL) => lock(connection).send_heartbeats(),
        }
    }
}

/// Runs the `describe` programs of the tools that are served: the list needs their schemas.
async fn describe_tools(session: &mut RunSession<'_>, served: &[Arc<Tool>]) {
    let undescribed = served.iter().filter(|tool| tool.needs_describe());
    let undescribed: Vec<Arc<Tool>> = undescribed.cloned().collect();
    if !undescribed.is_empty() {
        let discovery = session.engine.schema_discovery();
        discovery
            .discover(&undescribed, &mut session.warning_sink())
            .await;
    }
}
