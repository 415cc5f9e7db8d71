//! `toolq generate`: prints files that are generated from the program itself.

use std::io::{self, Write as _};

use clap::{Arg, Args, Command, Subcommand};
use clap_mangen::Man;

use crate::commands::complete::completion_script;
use crate::help::{EXAMPLES, EXIT_CODES};
use crate::output::{CommandError, Exit, stdout};
use crate::plan_file::plan_schema;
use toolq_core::tools_file;

#[derive(Debug, Args)]
pub struct GenerateArguments {
    #[command(subcommand)]
    pub file: GeneratedFile,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GeneratedFile {
    /// Print the JSON Schema of tools.yaml
    Schema {
        /// Print the schema of a session log record instead
        #[arg(long)]
        log: bool,
        /// Print the schema of the file that `toolq plan --out` writes instead
        #[arg(long, conflicts_with = "log")]
        plan: bool,
    },
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}

/// Prints the requested file. `program` is the whole command line.
///
/// # Errors
/// Stdout can't be written.
pub fn print_generated_file(
    arguments: &GenerateArguments,
    mut program: Command,
) -> Result<Exit, CommandError> {
    let text = match arguments.file {
        GeneratedFile::Schema { log: true, .. } => format!("{:#}", toolq_log::log_schema()),
        GeneratedFile::Schema { plan: true, .. } => format!("{:#}", plan_schema()),
        GeneratedFile::Schema { .. } => {
            format!("{:#}", tools_file::generate_tools_schema())
        }
        GeneratedFile::Completions { shell } => render_completions(shell, &mut program),
        GeneratedFile::Man => render_man_page(&program).map_err(|error| {
            CommandError::usage(format!("failed to render the man page: {error}"))
        })?,
    };
    stdout::write_line(text.trim_end())?;
    Ok(Exit::Ok)
}

fn render_completions(shell: clap_complete::Shell, program: &mut Command) -> String {
    if let Some(script) = completion_script(shell) {
        return script.to_owned();
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, program, "toolq", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

// The man page: one page for all commands, because they share flags and exit codes.

/// The day of this version, for the footer of the page.
const VERSION_DATE: &str = "2026-11-22";

const ENVIRONMENT_VARIABLES: [(&str, &str); 7] = [
    ("TOOLQ_TOOLS", "the tools file, unless -c is given"),
    ("TOOLQ_LOG_FILE", "the session log, unless --log is given"),
    (
        "XDG_STATE_HOME",
        "session logs are kept in toolq/sessions below it [default: ~/.local/state]",
    ),
    (
        "NO_COLOR",
        "disables colors, unless --color always is given",
    ),
    (
        "CLICOLOR_FORCE",
        "enables colors even if the output isn't a terminal",
    ),
    (
        "CLICOLOR, TERM",
        "CLICOLOR=0 and TERM=dumb disable colors, unless CLICOLOR_FORCE is set",
    ),
    (
        "CI",
        "makes --progress auto print a line per event, instead of a bar",
    ),
];

const SEE_ALSO: &str = "\
.BR jq (1),
.BR curl (1)
.PP
The directory docs of the source code has a page for each subject: tools.yaml, dialects, streams, the session log,
events, agents, replay.";

/// Renders the page as roff.
///
/// # Errors
/// Only what writing to a buffer can return.
fn render_man_page(command: &Command) -> io::Result<String> {
    let command = command.clone().disable_help_subcommand(true);
    let page = Man::new(command.clone()).date(VERSION_DATE);
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    // The page is the same for all builds, so it also has the commands that some of them lack.
    let is_for_people =
        |command: &&Command| !matches!(command.get_name(), "generate" | "__complete");
    let mut whole = command;
    whole.build();
    for subcommand in whole.get_subcommands().filter(is_for_people) {
        write_command_section(&mut out, "toolq", subcommand)?;
    }
    page.render_options_section(&mut out)?;
    write_table_section(&mut out, "EXAMPLES", &EXAMPLES)?;
    write_table_section(&mut out, "EXIT STATUS", &EXIT_CODES)?;
    write_table_section(&mut out, "ENVIRONMENT", &ENVIRONMENT_VARIABLES)?;
    writeln!(out, ".SH \"SEE ALSO\"\n{SEE_ALSO}")?;
    // Not every roff knows how to print other characters.
    Ok(String::from_utf8_lossy(&out).replace('…', "..."))
}

/// Writes a section for the command, or one for each of its subcommands. Global flags have a section of their own.
fn write_command_section(
    out: &mut dyn io::Write,
    parent: &str,
    command: &Command,
) -> io::Result<()> {
    let name = format!("{parent} {}", command.get_name());
    if command.has_subcommands() {
        let mut subcommands = command.get_subcommands();
        return subcommands
            .try_for_each(|subcommand| write_command_section(out, &name, subcommand));
    }
    let mut standalone = command.clone().bin_name(&name).mut_args(|argument| {
        let is_shared = is_shared(&argument);
        argument.hide(is_shared)
    });
    let usage = standalone.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let page = Man::new(standalone);
    let (mut about, mut options) = (Vec::new(), Vec::new());
    page.render_description_section(&mut about)?;
    page.render_options_section(&mut options)?;
    writeln!(out, ".SH \"{}\"", escape_roff(&name).to_uppercase())?;
    writeln!(out, ".B {}", escape_roff(usage))?;
    writeln!(out, ".PP")?;
    write!(out, "{}{}", section_body(&about), section_body(&options))
}

/// Returns whether all commands have the argument.
fn is_shared(argument: &Arg) -> bool {
    argument.is_global_set() || matches!(argument.get_id().as_str(), "help" | "version")
}

/// Writes a section of terms with their meanings.
fn write_table_section(
    out: &mut dyn io::Write,
    title: &str,
    rows: &[(&str, &str)],
) -> io::Result<()> {
    writeln!(out, ".SH \"{title}\"")?;
    for (term, meaning) in rows {
        let (term, meaning) = (escape_roff(term), escape_roff(meaning));
        writeln!(out, ".TP\n\\fB{term}\\fR\n{meaning}")?;
    }
    Ok(())
}

/// Returns a rendered section without its title. The headings of groups of flags in it become subsections.
fn section_body(section: &[u8]) -> String {
    let section = String::from_utf8_lossy(section);
    let titled = section.split_once(".SH ");
    let body = titled.and_then(|(_, titled)| titled.split_once('\n'));
    body.map_or_else(String::new, |(_, body)| body.replace("\n.SH ", "\n.SS "))
}

/// Escapes backslashes and dashes. Leading dots need no escape, because no line here starts with one.
fn escape_roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::ProgramArguments;

    /// Returns the visible commands without subcommands, each with its whole name.
    fn leaf_commands<'c>(name: &str, command: &'c Command) -> Vec<(String, &'c Command)> {
        let visible = command
            .get_subcommands()
            .filter(|subcommand| !subcommand.is_hide_set());
        let descendants: Vec<_> = visible
            .flat_map(|subcommand| {
                leaf_commands(&format!("{name} {}", subcommand.get_name()), subcommand)
            })
            .collect();
        if descendants.is_empty() {
            vec![(name.to_owned(), command)]
        } else {
            descendants
        }
    }

    #[test]
    fn the_page_has_every_command_and_flag() {
        let page = render_man_page(&ProgramArguments::command()).unwrap();
        let mut command = ProgramArguments::command().disable_help_subcommand(true);
        command.build();
        for (name, leaf) in leaf_commands("toolq", &command) {
            let title = format!(".SH \"{}\"\n", escape_roff(&name).to_uppercase());
            let (_, section) = page.split_once(&title).unwrap();
            let section = section.split(".SH ").next().unwrap_or_default();
            let own = leaf.get_arguments().filter(|argument| !is_shared(argument));
            for flag in own.filter_map(|flag| flag.get_long()) {
                let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(section.contains(&flag), "{flag}: {section}");
            }
        }
    }

    #[test]
    fn every_roff_can_print_the_page() {
        let page = render_man_page(&ProgramArguments::command()).unwrap();
        let others: String = page.chars().filter(|char| !char.is_ascii()).collect();
        assert_eq!(others, "");
        assert!(page.contains(VERSION_DATE) && page.contains(".SH \"SEE ALSO\""));
    }
}
