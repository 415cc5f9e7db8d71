//! What `toolq init --from` imports: declarations of tools, or servers that other programs are configured with.

use std::fs;
use std::path::Path;

use crate::context::CommandContext;
use crate::input::files;
use crate::output::{CommandError, StderrWriter};
use toolq_core::client_config::{ClientConfig, read_client_config};
use toolq_core::text::escape;
use toolq_core::tools_file;
use toolq_core::transcript;
use toolq_core::transcript::ToolDeclarations;

/// Maximum size of the document with declarations.
const MAX_DECLARATIONS_BYTES: u64 = 64 << 20;

/// Maximum size of a configuration with servers.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// What to do with a new tools.yaml.
#[derive(Debug, Clone, Copy)]
pub(super) enum NextStep {
    /// It declares tools, which lack what the import doesn't know.
    Check,
    /// It declares servers alone.
    Lock,
}

impl NextStep {
    /// Returns the command, with the flag that names the file, and what it is for.
    pub(super) fn text(self, flag: &str) -> String {
        match self {
            Self::Check => format!("run `toolq check{flag}` to see what is left to do"),
            Self::Lock => {
                format!("run `toolq servers lock{flag}` to ask its servers for their tools")
            }
        }
    }
}

/// Returns the text of a tools.yaml with what the file declares, and what to do next.
///
/// # Errors
/// The file can't be read, or has nothing to import.
pub(super) fn import_file(
    from: &Path,
    context: &CommandContext,
) -> Result<(String, NextStep), CommandError> {
    if let Some(config) = read_servers(from)? {
        for note in &config.notes {
            context.stderr.print_warning(&escape(note));
        }
        return Ok((tools_file::servers_tools_file(&config), NextStep::Lock));
    }
    let source = files::open_source(from)?;
    let declared = transcript::read_declarations(source, MAX_DECLARATIONS_BYTES)?;
    warn_of_omissions(&declared, &context.stderr);
    Ok((
        tools_file::starter_tools_file(&declared.tools),
        NextStep::Check,
    ))
}

/// Reads the MCP servers of another program's file. Returns `None` if the file is something else.
fn read_servers(path: &Path) -> Result<Option<ClientConfig>, CommandError> {
    let is_small = fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_CONFIG_BYTES);
    // If the file can't be read, the caller reads it as declarations next, and reports why that fails.
    let Some(text) = is_small.then(|| fs::read_to_string(path).ok()).flatten() else {
        return Ok(None);
    };
    let config = read_client_config(&text).transpose().map_err(|why| {
        let name = path.display();
        CommandError::usage(format!("{name} can't be used: {why}"))
            .with_hint("correct the entry, or remove it from a copy of the file")
    })?;
    match config {
        Some(config) if config.servers.is_empty() => {
            let why = config.notes.join("; ");
            let error = format!("{} has no server that can be imported", path.display());
            Err(CommandError::usage(error).with_hint(why))
        }
        config => Ok(config),
    }
}

/// Warns about declarations that aren't imported.
fn warn_of_omissions(declarations: &ToolDeclarations, stderr: &StderrWriter) {
    if declarations.is_partial {
        stderr.print_warning("the server has more tools than this `tools/list` result: request the rest with its `nextCursor`");
    }
    match declarations.nameless_tools {
        0 => {}
        1 => stderr.print_warning("left out a tool without a name, which no model could call"),
        count => stderr.print_warning(&format!(
            "left out {count} tools without a name, which no model could call"
        )),
    }
    for tool in &declarations.tools {
        if let Some(fault) = tool.schema_fault() {
            let name = escape(&tool.name);
            stderr.print_warning(&format!("left out the `input_schema` of `{name}`: {fault}"));
        }
    }
    if !declarations.api_tools.is_empty() {
        let names = declarations.api_tools.join("`, `");
        stderr.print_note(&format!(
            "left out, because the API runs them itself: `{names}`"
        ));
    }
}
