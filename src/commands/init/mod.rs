//! `toolq init`: creates a tools.yaml, the schema that it refers to, and an agent loop.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::args::{AgentLoopLanguage, DEFAULT_TOOLS_FILE, StarterKind};
use crate::context::CommandContext;
use crate::input::files;
use crate::output::{CommandError, Exit, StderrWriter, stdout};
use toolq_core::client_config::{ClientConfig, read_client_config};
use toolq_core::text::{escape, quote_path_for_shell};
use toolq_core::tools_file;
use toolq_core::transcript::{self, ToolDeclarations};

#[derive(Debug, Args)]
pub struct InitArguments {
    /// What to start from
    #[arg(value_name = "KIND", default_value = "minimal")]
    pub kind: StarterKind,
    /// What to import: a request with `tools`, an array of tools, an MCP `tools/list` result, or a file with
    /// `mcpServers`, such as `.mcp.json`
    #[arg(long, conflicts_with = "kind", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Also write an agent, which asks a model and has toolq run its calls; an existing tools.yaml is kept, even with `--force`
    #[arg(long, value_name = "LANGUAGE")]
    agent_loop: Option<AgentLoopLanguage>,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}

/// Tells editors where the schema of the file is.
const SCHEMA_LINE: &str = "# yaml-language-server: $schema=./tools.schema.json\n";

const SCHEMA_NAME: &str = "tools.schema.json";

/// An input that `list_files` of the starter files accepts anywhere.
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
        check_absent(language, path, arguments.force)?;
    }
    let keeps_tools = arguments.agent_loop.is_some() && arguments.from.is_none() && path.exists();
    if !keeps_tools {
        create_tools_file(arguments, context)?;
    }
    if let Some(language) = arguments.agent_loop {
        write_agent_loop(language, arguments.force, context)?;
    }
    Ok(Exit::Ok)
}

fn create_tools_file(
    arguments: &InitArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let path = &context.tools_path;
    let flag = context.tools_flag();
    let (text, next_step) = match &arguments.from {
        None => starter_file(arguments.kind, &flag),
        Some(from) => {
            let (text, step) = import_file(from, context)?;
            (text, step.text(&flag))
        }
    };
    if path == Path::new("-") {
        return Ok(stdout::write_line(text.trim_end())?);
    }
    let schema = write_schema(path, arguments.force)?;
    let first_line = schema.map_or("", |_| SCHEMA_LINE);
    write_new_file(path, &(first_line.to_owned() + &text), arguments.force)?;
    let also = if schema == Some(true) {
        " and tools.schema.json"
    } else {
        ""
    };
    let wrote = format!("wrote {}{also}", path.display());
    if arguments.from.is_some() {
        context.stderr.print_note(&format!("{wrote}; {next_step}"));
    } else {
        context.stderr.print_note(&wrote);
        context.stderr.print_note(&next_step);
    }
    Ok(())
}

/// Returns commented examples of tools, and what to do with them.
fn starter_file(kind: StarterKind, flag: &str) -> (String, String) {
    let first_call = format!("answer a first call: echo '{FIRST_CALL}' | toolq run{flag}");
    let (text, next_step) = match kind {
        StarterKind::Minimal => (include_str!("starters/minimal.yaml"), first_call),
        StarterKind::Coding => (include_str!("starters/coding.yaml"), first_call),
        StarterKind::Http => (
            include_str!("starters/http.yaml"),
            format!("fill in what says FILL IN, then: toolq check --machine{flag}"),
        ),
        StarterKind::Mcp => (
            include_str!("starters/mcp.yaml"),
            format!("fill in what says FILL IN, then: toolq servers lock{flag}"),
        ),
    };
    (text.to_owned(), next_step)
}

/// Writes the schema of tools.yaml beside it, unless that would replace a file that the user may have written. Returns
/// whether it was written, or `None` if tools.yaml can't refer to a schema.
fn write_schema(tools_path: &Path, force: bool) -> Result<Option<bool>, CommandError> {
    let exists = tools_path.exists();
    // A device or pipe, such as `/dev/stdout`, is in a directory that isn't ours.
    if exists && (!force || !tools_path.is_file()) {
        return Ok(None);
    }
    let schema_path = tools_path.with_file_name(SCHEMA_NAME);
    let text = format!("{:#}\n", tools_file::generate_tools_schema());
    match write_new_file(&schema_path, &text, force) {
        Err(_) if schema_path.is_file() => Ok(Some(false)),
        written => written.map(|()| Some(true)),
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

// `toolq init --agent-loop`: writes a loop between a model and toolq.

/// The name, the text and the program of a loop.
struct AgentLoop {
    name: &'static str,
    text: &'static str,
    run_with: &'static str,
}

fn agent_loop(language: AgentLoopLanguage) -> AgentLoop {
    match language {
        AgentLoopLanguage::Sh => AgentLoop {
            name: "agent.sh",
            text: include_str!("agent_loops/agent.sh"),
            run_with: "sh",
        },
        AgentLoopLanguage::Python => AgentLoop {
            name: "agent.py",
            text: include_str!("agent_loops/agent.py"),
            run_with: "python3",
        },
        AgentLoopLanguage::Typescript => AgentLoop {
            name: "agent.ts",
            text: include_str!("agent_loops/agent.ts"),
            run_with: "npx tsx",
        },
    }
}

fn path_beside(tools_path: &Path, language: AgentLoopLanguage) -> PathBuf {
    tools_path.with_file_name(agent_loop(language).name)
}

/// Makes sure that the loop can be written before anything else is.
///
/// # Errors
/// There is a file of its name, or no directory that it could be written to.
fn check_absent(
    language: AgentLoopLanguage,
    tools_path: &Path,
    force: bool,
) -> Result<(), CommandError> {
    if tools_path == Path::new("-") {
        let message = "an agent loop is written beside tools.yaml, which can't be stdout then";
        return Err(CommandError::usage(message).with_hint("leave out `-c -`"));
    }
    let path = path_beside(tools_path, language);
    if path.exists() && !force {
        let message = format!("{} already exists", path.display());
        return Err(CommandError::usage(message).with_hint("move it away, or use --force"));
    }
    Ok(())
}

/// Writes the loop beside tools.yaml, and says how to run it.
///
/// # Errors
/// The file can't be written.
fn write_agent_loop(
    language: AgentLoopLanguage,
    force: bool,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let AgentLoop {
        name,
        text,
        run_with,
    } = agent_loop(language);
    let path = path_beside(&context.tools_path, language);
    write_new_file(&path, text, force)?;
    let wrote = format!("wrote {}", path.display());
    context.stderr.print_note(&wrote);
    let tools_name = context.tools_path.file_name().map(Path::new);
    let tools_variable = match tools_name {
        Some(tools) if tools != Path::new(DEFAULT_TOOLS_FILE) => {
            format!("TOOLQ_TOOLS={} ", quote_path_for_shell(tools))
        }
        _ => String::new(),
    };
    context.stderr.print_note(&format!(
        "run it beside tools.yaml: {tools_variable}ANTHROPIC_API_KEY=… {run_with} {name} 'Which files are here?'"
    ));
    Ok(())
}

// What `toolq init --from` imports: declarations of tools, or servers that other programs are configured with.

/// Maximum size of the document with declarations.
const MAX_DECLARATIONS_BYTES: u64 = 64 << 20;

/// Maximum size of a configuration with servers.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// What to do with a new tools.yaml.
#[derive(Debug, Clone, Copy)]
enum NextStep {
    /// It declares tools, which lack what the import doesn't know.
    Check,
    /// It declares servers alone.
    Lock,
}

impl NextStep {
    /// Returns the command, with the flag that names the file, and what it is for.
    pub(crate) fn text(self, flag: &str) -> String {
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
fn import_file(from: &Path, context: &CommandContext) -> Result<(String, NextStep), CommandError> {
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
