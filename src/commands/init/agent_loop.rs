//! `toolq init --agent-loop`: writes a loop between a model and toolq.

use std::path::{Path, PathBuf};

use crate::args::{AgentLoopLanguage, DEFAULT_TOOLS_FILE};
use crate::commands::init::write_new_file;
use crate::context::CommandContext;
use crate::output::CommandError;
use toolq_core::text::quote_path_for_shell;

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
pub(super) fn check_absent(
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
pub(super) fn write_agent_loop(
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
