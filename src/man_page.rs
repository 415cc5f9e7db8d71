//! The command line as a man page: one page for all commands, since they share their flags and exit codes.

use std::io;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::{Arguments, EXAMPLES, EXIT_CODES};

const ENVIRONMENT: &str = "\
TOOLQ_TOOLS     the tools file, where -c names none
XDG_STATE_HOME  session logs are kept in toolq/sessions below it [default: ~/.local/state]
NO_COLOR        no colours, unless --color asks for them
CI              --progress auto writes lines, where stderr is no terminal";

/// The page in roff.
///
/// # Errors
/// None but those of memory: it is written to a buffer.
pub fn page() -> io::Result<String> {
    let command = Arguments::command();
    let page = Man::new(command.clone().disable_help_subcommand(true));
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    for subcommand in command.get_subcommands() {
        write_command(&mut out, "toolq", subcommand)?;
    }
    page.render_options_section(&mut out)?;
    write_lines(&mut out, "EXAMPLES", EXAMPLES)?;
    write_lines(&mut out, "EXIT STATUS", EXIT_CODES)?;
    write_lines(&mut out, "ENVIRONMENT", ENVIRONMENT)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A section for the command, or for each of its own commands. Flags of every command are not in it.
fn write_command(out: &mut dyn io::Write, parent: &str, command: &Command) -> io::Result<()> {
    let name = format!("{parent} {}", command.get_name());
    if command.has_subcommands() {
        let mut subcommands = command.get_subcommands();
        return subcommands.try_for_each(|subcommand| write_command(out, &name, subcommand));
    }
    let mut alone = command.clone().bin_name(&name).disable_help_flag(true);
    let usage = alone.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let page = Man::new(alone);
    let (mut about, mut options) = (Vec::new(), Vec::new());
    page.render_description_section(&mut about)?;
    page.render_options_section(&mut options)?;
    writeln!(out, ".SH \"{}\"", escaped(&name).to_uppercase())?;
    writeln!(out, ".B {}", escaped(usage))?;
    writeln!(out, ".PP")?;
    write!(out, "{}{}", body(&about), body(&options))
}

/// A section whose lines stay as they are.
fn write_lines(out: &mut dyn io::Write, title: &str, lines: &str) -> io::Result<()> {
    writeln!(out, ".SH \"{title}\"\n.nf\n{}\n.fi", escaped(lines))
}

/// What stands behind the title of a section.
fn body(section: &[u8]) -> String {
    let section = String::from_utf8_lossy(section);
    let titled = section.split_once(".SH ");
    let body = titled.and_then(|(_, titled)| titled.split_once('\n'));
    body.map_or_else(String::new, |(_, body)| body.to_owned())
}

/// Backslashes and dashes as they are typed. No line here begins with roff's dot.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &Command) -> Vec<&Command> {
        let below: Vec<_> = command.get_subcommands().flat_map(leaves).collect();
        if below.is_empty() {
            vec![command]
        } else {
            below
        }
    }

    #[test]
    fn the_page_has_every_command_and_flag() {
        let page = page().unwrap();
        let command = Arguments::command();
        for leaf in leaves(&command) {
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
