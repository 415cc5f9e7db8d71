//! `toolq record`: passes on what an MCP client and its server say to each other, and leaves a session log of the calls.
//!
//! Every byte passes unchanged. The log is the same as that of `serve`, so that `replay` reads it.

mod call_recorder;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::args::RecordArguments as Arguments;
use crate::commands::record::call_recorder::CallRecorder;
use crate::context::CommandContext;
use crate::input::{ChunkReader, stdin};
use crate::output::stdout;
use crate::output::{ClientOutput, CommandError, Exit, StderrWriter};
use crate::session::{LogSubject, RunSession};
use crate::settings::SessionSettings;
use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::{CallEnding, ToolsConfig};
use toolq_engine::ProxiedServer;

/// One tool that represents all tools of the server, which aren't declared anywhere. It is a `write`, since nothing is known
/// about their effects.
const TOOLS: &str = "version: 1\ntools: {tool: {input_schema: {type: object}, effect: write}}\n";

/// How long a client may take to read the last bytes.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Runs the server until it ends, or a signal comes. Returns the server's own exit code.
///
/// # Errors
/// The log can't be used, or the server can't be started.
pub fn record_server(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    let tools = Arc::new(watched_tools(arguments, context)?);
    StderrWriter::set_mask(&context.build_mask(&tools));
    let input = stdin::take()?;
    let settings = SessionSettings::of_record(arguments, &context.environment);
    let subject = LogSubject::Server {
        program: Path::new(&arguments.command[0]),
    };
    let mut session = RunSession::begin(context, tools, &settings, subject)?;
    let result = session.block_on(async |session| pass_on(session, arguments, input).await);
    // A new log without a call in it is removed.
    let log = session.sinks.log_path().map(Path::to_owned);
    let exit = *result.as_ref().unwrap_or_else(|failure| &failure.exit);
    let exit = session.finish_quietly([exit]);
    if let Some(log) = log.filter(|log| log.exists()) {
        let note = format!("session log: {}", log.display());
        context.stderr.print_note(&note);
    }
    match result {
        Ok(_) => Ok(exit),
        Err(failure) => Err(CommandError { exit, ..failure }),
    }
}

/// Returns a file of tools without any of the server's, but with the secrets.
fn watched_tools(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<ToolsConfig, CommandError> {
    let current_dir = std::env::current_dir().map_err(|error| {
        CommandError::usage(format!("can't determine the current directory: {error}"))
    })?;
    for name in &arguments.secret {
        if context.environment.get_os(name).is_none() {
            let warning =
                format!("--secret {name}: the variable isn't set, so there is no value to mask");
            context.stderr.print_warning(&warning);
        }
    }
    let parsed = parse_tools_file(TOOLS, &current_dir, &current_dir);
    let tools = parsed
        .tools
        .ok_or_else(|| CommandError::silent(Exit::Usage))?;
    Ok(ToolsConfig {
        secrets: arguments.secret.clone(),
        ..tools
    })
}

/// Passes bytes in both directions until the server has ended. Returns how it ended.
async fn pass_on(
    session: &mut RunSession<'_>,
    arguments: &Arguments,
    input: File,
) -> Result<Exit, CommandError> {
    let control = session.engine.control();
    let output = ClientOutput::start(control.clone(), None).map_err(CommandError::usage)?;
    let mut client = ChunkReader::new(Vec::new(), input);
    client.read_in_background().map_err(CommandError::usage)?;
    let settings = session.default_engine_settings();
    let cannot_start = |error| {
        let program = arguments.command[0].to_string_lossy();
        CommandError::usage(format!("{program} can't be started: {error}")).with_hint(
            "name the server's program, as the client would start it, after the options of toolq",
        )
    };
    let server = ProxiedServer::start(&arguments.command, &settings, control.clone()).await;
    let mut server = server.map_err(cannot_start)?;
    let mut recorder = CallRecorder::new(session, settings);
    let mut client_has_left = false;
    loop {
        let is_ready = !client_has_left && server.is_ready();
        let from_server = async {
            output.wait_for_room().await;
            server.next_bytes().await
        };
        tokio::select! {
            biased;
            () = control.wait_for_external_halt() => break,
            bytes = from_server => match bytes {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => {
                    recorder.take_server_bytes(&bytes);
                    output.send(bytes);
                }
                None => break,
            },
            chunk = client.next(), if is_ready => {
                // What can't be read is the end: the server then ends, too.
                let bytes = chunk.unwrap_or_default();
                if bytes.is_empty() {
                    client_has_left = true;
                    server.close_stdin();
                } else {
                    recorder.take_client_bytes(&bytes);
                    server.send(bytes);
                }
            }
        }
    }
    let ending = server.end().await;
    recorder.finish();
    // The server's exit code tells more than a client that has stopped reading.
    let _ = timeout(OUTPUT_GRACE, output.wait_until_written()).await;
    match ending.map_err(cannot_start)? {
        Some(CallEnding::ExitCode(0)) => Ok(Exit::Ok),
        Some(CallEnding::ExitCode(code)) => Ok(Exit::Program(u8::try_from(code).unwrap_or(1))),
        Some(CallEnding::Signal(signal)) => {
            Ok(Exit::Program(128 + u8::try_from(signal).unwrap_or(0)))
        }
        _ => Ok(Exit::Program(1)),
    }
}
