//! `toolq init`: a tools.yaml to start from.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::args::Init;
use crate::context::Context;
use crate::input::files;
use crate::output::{Exit, Failure, Stderr};
use toolq_core::tools_file;
use toolq_core::transcript;
use toolq_core::transcript::Declarations;

/// What a new file holds: one tool of each kind, with the words that explain it.
const STARTER: &str = include_str!("starter.yaml");

/// The largest document of declarations, in bytes.
const LARGEST: u64 = 64 << 20;

/// Writes the file that `-c` names.
///
/// # Errors
/// The file exists and `--force` was not given, it can't be written, or `--from` holds no declarations.
pub fn init(arguments: &Init, context: &Context) -> Result<Exit, Failure> {
    let text = match &arguments.from {
        None => STARTER.to_owned(),
        Some(from) => {
            let declared = transcript::declarations(files::source(from)?, LARGEST)?;
            tell_what_is_missing(&declared, &context.stderr);
            tools_file::tools_file(&declared.tools)
        }
    };
    let path = &context.tools_path;
    write(path, &text, arguments.force)?;
    context.stderr.note(&format!(
        "wrote {}; `toolq check` tells what is left to do",
        path.display()
    ));
    Ok(Exit::Ok)
}

/// Nothing that was declared is left out without a word.
fn tell_what_is_missing(declared: &Declarations, stderr: &Stderr) {
    if declared.is_partial {
        stderr.warning("the server has more tools than this answer to `tools/list`: ask it with its `nextCursor`, too");
    }
    if !declared.left_to_api.is_empty() {
        let names = declared.left_to_api.join("`, `");
        stderr.note(&format!(
            "left out, since the API runs them itself: `{names}`"
        ));
    }
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
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
            // Half of a file is none.
            let _ = fs::remove_file(path);
        }
        written
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists already", path.display()))
                .with_hint("name another file with -c FILE, or replace it with --force")
        }
        _ => Failure::usage(format!("{} can't be written: {error}", path.display())),
    })
}
