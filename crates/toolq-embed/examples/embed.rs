//! Answers the calls of a recorded message from a Rust program.
//!
//! ```sh
//! cargo run -p toolq-embed --example embed -- tools.yaml fixtures/response.json
//! ```
//!
//! Prints the plan and the events to stderr, and the reply to stdout.

use std::error::Error;
use std::process::ExitCode;

use toolq_embed::{Event, Toolq};

#[expect(clippy::print_stderr, reason = "an example for people")]
fn main() -> ExitCode {
    // Serve as the supervisor of commands if this process was started as one.
    if let Some(exit_code) = toolq_embed::supervise() {
        return exit_code;
    }
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example for people"
)]
async fn answer() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let tools_file = arguments.next().unwrap_or_else(|| "tools.yaml".to_owned());
    let message = arguments.next();
    let message = std::fs::read_to_string(message.as_deref().unwrap_or("fixtures/response.json"))?;

    let toolq = Toolq::builder().tools_file(tools_file).build()?;
    for warning in toolq.warnings() {
        eprintln!("warning: {warning}");
    }
    eprintln!("{}", toolq.plan(&message)?);
    let reply = toolq
        .answer(&message)
        .events(|event| match event {
            Event::Started { call, .. } => eprintln!("{}: started", call.tool_use_id),
            Event::Finished { call, status, .. } => eprintln!("{}: {status}", call.tool_use_id),
            _ => {}
        })
        .await?;
    println!("{reply}");
    toolq.close()?;
    Ok(())
}
