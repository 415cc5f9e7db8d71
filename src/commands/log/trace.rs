//! `toolq log trace`: a log as Chrome trace events, or as OpenTelemetry spans.

use crate::args::LogTraceArguments as Arguments;
use crate::commands::log::log_files::{read_timeline, select_log, warn_torn, write_output};
use crate::context::CommandContext;
use crate::otlp::{OtlpSettings, export_log};
use crate::output::{CommandError, Exit};
use crate::timeline::write_trace_events;

/// Prints the trace of a log, writes it to a file, or sends it to a receiver.
///
/// # Errors
/// The log can't be read, or the trace can't be written.
pub fn print_trace(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let path = select_log(arguments.page.file.as_deref(), context)?;
    let (timeline, torn_end) = read_timeline(&path)?;
    if let Some(torn_end) = torn_end {
        warn_torn(&path, &torn_end, context);
    }
    if arguments.otlp.otlp.is_some() {
        let environment = &context.environment;
        let sent = match OtlpSettings::new(&arguments.otlp, environment) {
            Some(settings) => export_log(&timeline, &settings, environment)?,
            None => "OTEL_SDK_DISABLED is true, so no spans were sent".to_owned(),
        };
        context.stderr.print_note(&sent);
        return Ok(Exit::Ok);
    }
    let trace = write_trace_events(&timeline, &path.display().to_string());
    write_output(arguments.page.output.as_deref(), &path, &trace, context)?;
    Ok(Exit::Ok)
}
