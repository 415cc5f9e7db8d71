//! `toolq init`: creates a starter tools.yaml.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::args::InitArguments;
use crate::context::CommandContext;
use crate::input::files;
use crate::output::stdout;
use crate::output::{CommandError, Exit, StderrWriter};
use toolq_core::tools_file;
use toolq_core::transcript;
use toolq_core::transcript::ToolDeclarations;

/// The starter file: commented examples of tools.
const STARTER: &str = include_str!("starter.yaml");

/// Maximum size of the document with declarations.
const MAX_DECLARATIONS_BYTES: u64 = 64 << 20;

/// Creates the file that `-c` names; `-c -` prints it.
///
/// # Errors
/// The file exists and `--force` isn't given, it can't be written, or `--from` has no declarations.
pub fn init_tools_file(
    arguments: &InitArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let text = match &arguments.from {
        None => STARTER.to_owned(),
        Some(from) => {
            let declared =
                transcript::read_declarations(files::open_source(from)?, MAX_DECLARATIONS_BYTES)?;
            warn_of_omissions(&declared, &context.stderr);
            tools_file::starter_tools_file(&declared.tools)
        }
    };
    let path = &context.tools_path;
    if path == Path::new("-") {
        stdout::write_line(text.trim_end())?;
        return Ok(Exit::Ok);
    }
    write_tools_file(path, &text, arguments.force)?;
    context.stderr.print_note(&format!(
        "wrote {}; run `toolq check` to see what is left to do",
        path.display()
    ));
    Ok(Exit::Ok)
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
    if !declarations.api_tools.is_empty() {
        let names = declarations.api_tools.join("`, `");
        stderr.print_note(&format!(
            "left out, because the API runs them itself: `{names}`"
        ));
    }
}

fn write_tools_file(path: &Path, text: &str, force: bool) -> Result<(), CommandError> {
    let replaces = force && path.exists();
    let opened = if force {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    } else {
        OpenOptions::new().write(true).create_new(true).open(path)
    };
    let written = opened.and_then(|mut file| {
        let written = file.write_all(text.as_bytes());
        if written.is_err() && !replaces {
            // Don't leave a partial file behind.
            let _ = fs::remove_file(path);
        }
        written
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CommandError::usage(format!("{} already exists", path.display()))
                .with_hint("name another file with -c FILE, or replace it with --force")
        }
        _ => CommandError::usage(format!("{} can't be written: {error}", path.display())),
    })
}
