//! The man page: one page for all commands, because they share flags and exit codes.

use std::io;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::{EXAMPLES, EXIT_CODES, ProgramArguments};

const ENVIRONMENT_VARIABLES: &str = "\
TOOLQ_TOOLS     the tools file, unless -c is given
XDG_STATE_HOME  session logs are kept in toolq/sessions below it [default: ~/.local/state]
NO_COLOR        disables colors, unless --color always is given
CI              makes --progress auto print lines if stderr isn't a terminal";

/// Renders the page as roff.
///
/// # Errors
/// Only what writing to a buffer can return.
pub fn render_man_page() -> io::Result<String> {
    let command = ProgramArguments::command();
    let page = Man::new(command.clone().disable_help_subcommand(true));
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    for subcommand in command.get_subcommands() {
        write_command_section(&mut out, "toolq", subcommand)?;
    }
    page.render_options_section(&mut out)?;
    write_verbatim_section(&mut out, "EXAMPLES", EXAMPLES)?;
    write_verbatim_section(&mut out, "EXIT STATUS", EXIT_CODES)?;
    write_verbatim_section(&mut out, "ENVIRONMENT", ENVIRONMENT_VARIABLES)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
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
    let mut standalone = command.clone().bin_name(&name).disable_help_flag(true);
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

/// Writes a section whose lines aren't filled.
fn write_verbatim_section(out: &mut dyn io::Write, title: &str, lines: &str) -> io::Result<()> {
    writeln!(out, ".SH \"{title}\"\n.nf\n{}\n.fi", escape_roff(lines))
}

/// Returns a rendered section without its title.
fn section_body(section: &[u8]) -> String {
    let section = String::from_utf8_lossy(section);
    let titled = section.split_once(".SH ");
    let body = titled.and_then(|(_, titled)| titled.split_once('\n'));
    body.map_or_else(String::new, |(_, body)| body.to_owned())
}

/// Escapes backslashes and dashes. Leading dots need no escape, because no line here starts with one.
fn escape_roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf_commands(command: &Command) -> Vec<&Command> {
        let descendants: Vec<_> = command.get_subcommands().flat_map(leaf_commands).collect();
        if descendants.is_empty() {
            vec![command]
        } else {
            descendants
        }
    }

    #[test]
    fn the_page_has_every_command_and_flag() {
        let page = render_man_page().unwrap();
        let command = ProgramArguments::command();
        for leaf in leaf_commands(&command) {
            let title = format!("{}\"\n", leaf.get_name().to_uppercase());
            let (_, section) = page.split_once(&title).unwrap();
            let section = section.split(".SH").next().unwrap_or_default();
            for flag in leaf.get_arguments().filter_map(|flag| flag.get_long()) {
                let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(section.contains(&flag), "{flag}: {section}");
            }
        }
    }
}
