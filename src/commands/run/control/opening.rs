//! What happens before the session begins: the host may announce tools, which the log has to know.

use crate::commands::run::control::host_lines::HostLines;
use crate::commands::run::control::message::{HostMessage, LineId, MessageError};
use crate::commands::run::control::reply_line::{error_line, problem_line};
use crate::commands::run::control::tools_loading::load_tools;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use toolq_core::tools_file::HostToolDeclarations;
use toolq_core::types::ToolsConfig;

/// How the message about an unusable file ends.
const NOTHING_RAN: &str = "; nothing ran";

/// The tools that a session begins with.
pub(super) struct OpeningTools {
    pub(super) tools: ToolsConfig,
    /// What the host has announced.
    pub(super) host_tools: Option<HostToolDeclarations>,
    /// The id of the line that announced it. Both are `None` if there was no such line.
    pub(super) line_id: Option<LineId>,
    /// Whether a line wasn't understood.
    pub(super) has_bad_line: bool,
}

/// Reads lines until the tools are known: those of tools.yaml, and those of the host if it begins with a `tools` line.
/// Lines that are wrong are answered.
///
/// # Errors
/// tools.yaml can't be used, or stdin or stdout fails.
pub(super) fn open_tools(
    lines: &mut HostLines,
    context: &CommandContext,
) -> Result<OpeningTools, CommandError> {
    let mut has_bad_line = false;
    loop {
        let line = lines.next_blocking().map_err(|error| {
            CommandError::new(Exit::Incomplete, format!("failed to read stdin: {error}"))
        })?;
        let (id, tools) = match line {
            Some(Ok(HostMessage::Tools { id, tools })) => (id, tools),
            Some(Err(error)) => {
                has_bad_line = true;
                refuse_line(&error, context)?;
                continue;
            }
            other => {
                if let Some(line) = other {
                    lines.put_back(line);
                }
                let tools = load_tools(context, None, NOTHING_RAN);
                return Ok(OpeningTools {
                    tools: tools.map_err(|failure| failure.error)?,
                    host_tools: None,
                    line_id: None,
                    has_bad_line,
                });
            }
        };
        let host_tools = match HostToolDeclarations::new(&tools) {
            Ok(host_tools) => host_tools,
            Err(problem) => {
                has_bad_line = true;
                let message = problem.message;
                refuse_line(&MessageError { id, message }, context)?;
                continue;
            }
        };
        match load_tools(context, Some(&host_tools), NOTHING_RAN) {
            Ok(tools) => {
                return Ok(OpeningTools {
                    tools,
                    host_tools: Some(host_tools),
                    line_id: id,
                    has_bad_line,
                });
            }
            Err(failure) if failure.is_of_host => {
                has_bad_line = true;
                let line = problem_line(id.as_ref(), &failure.summary(), &failure.problems);
                stdout::write_lines(line.as_bytes())?;
            }
            Err(failure) => return Err(failure.error),
        }
    }
}

/// Answers a line that is wrong. What tools.yaml calls secret is masked in the answer.
fn refuse_line(error: &MessageError, context: &CommandContext) -> Result<(), CommandError> {
    let message = match context.read_tools_file() {
        Ok(file) => file.mask.apply(&error.message).into_owned(),
        // Without the file, it isn't known what is secret.
        Err(_) => error.message.clone(),
    };
    stdout::write_lines(error_line(error.id.as_ref(), &message).as_bytes())?;
    Ok(())
}
