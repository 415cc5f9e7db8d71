//! `toolq init`: creates a tools.yaml, the schema that it refers to, and an agent loop.

mod agent_loop;
mod import;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::args::InitArguments;
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use toolq_core::tools_file;

/// The starter file: commented examples of tools.
const STARTER: &str = include_str!("starter.yaml");

/// Tells editors where the schema of the file is.
const SCHEMA_LINE: &str = "# yaml-language-server: $schema=./tools.schema.json\n";

const SCHEMA_NAME: &str = "tools.schema.json";

/// An input that the first tool of the starter file accepts anywhere.
const FIRST_CALL: &str =
    r#"{"type":"tool_use","id":"toolu_1","name":"list_files","input":{"path":"."}}"#;

/// Creates the file that `-c` names, and the schema beside it; `-c -` prints it. With `--agent-loop`, an existing file is
/// kept, even with `--force`, and the loop is written beside it.
///
/// # Errors
/// A file exists and `--force` isn't given, one can't be written, or `--from` has no declarations.
pub fn init_tools_file(
    arguments: &InitArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let path = &context.tools_path;
    if let Some(language) = arguments.agent_loop {
        agent_loop::check_absent(language, path, arguments.force)?;
    }
    let keeps_tools = arguments.agent_loop.is_some() && arguments.from.is_none() && path.exists();
    if !keeps_tools {
        create_tools_file(arguments, context)?;
    }
    if let Some(language) = arguments.agent_loop {
        agent_loop::write_agent_loop(language, arguments.force, context)?;
    }
    Ok(Exit::Ok)
}

fn create_tools_file(
    arguments: &InitArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let path = &context.tools_path;
    let (text, next_step) = match &arguments.from {
        None => (STARTER.to_owned(), None),
        Some(from) => {
            let (text, step) = import::import_file(from, context)?;
            (text, Some(step))
        }
    };
    if path == Path::new("-") {
        return Ok(stdout::write_line(text.trim_end())?);
    }
    let text = if write_schema(path, arguments.force)? {
        SCHEMA_LINE.to_owned() + &text
    } else {
        text
    };
    write_new_file(path, &text, arguments.force)?;
    let wrote = format!("wrote {}", path.display());
    let flag = context.tools_flag();
    if let Some(step) = next_step {
        let step = step.text(&flag);
        context.stderr.print_note(&format!("{wrote}; {step}"));
    } else {
        context.stderr.print_note(&wrote);
        let first_call = format!("answer a first call: echo '{FIRST_CALL}' | toolq run{flag}");
        context.stderr.print_note(&first_call);
    }
    Ok(())
}

/// Writes the schema of tools.yaml beside it, unless that would replace a file that the user may have written. Returns
/// whether tools.yaml can refer to the schema.
fn write_schema(tools_path: &Path, force: bool) -> Result<bool, CommandError> {
    let exists = tools_path.exists();
    // A device or pipe, such as `/dev/stdout`, is in a directory that isn't ours.
    if exists && (!force || !tools_path.is_file()) {
        return Ok(false);
    }
    let schema_path = tools_path.with_file_name(SCHEMA_NAME);
    let text = format!("{:#}\n", tools_file::generate_tools_schema());
    match write_new_file(&schema_path, &text, force) {
        Err(_) if schema_path.is_file() => Ok(true),
        written => written.map(|()| true),
    }
}

/// Writes a file that doesn't exist, or with `force` any.
fn write_new_file(path: &Path, text: &str, force: bool) -> Result<(), CommandError> {
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
                .with_hint(
                    "--force replaces it; -c FILE names another tools.yaml, beside which everything is written",
                )
        }
        _ => CommandError::usage(format!("{} can't be written: {error}", path.display())),
    })
}
