//! What `toolq --help` says, and `toolq` alone: what to type first.

use clap::Command;

const FIRST_STEPS: &str = "\
toolq runs the tool calls of a language model. What to type first:

  toolq init                 write a tools.yaml, and say how to try it
  toolq run response.json    answer the calls in a model's response
  toolq plan response.json   show what would run, without running anything
  toolq check --machine      say what is wrong in tools.yaml, or missing here
  toolq --help               list all commands";

/// The commands by what they are for.
const COMMAND_GROUPS: [(&str, &[&str]); 5] = [
    ("Run and plan", &["run", "plan", "call", "replay"]),
    ("tools.yaml", &["init", "check", "tools"]),
    ("MCP servers", &["servers", "serve"]),
    ("Sessions", &["approvals", "log"]),
    ("Queues", &["queue"]),
];

/// Example commands, each with what it does.
pub(crate) const EXAMPLES: [(&str, &str); 5] = [
    (
        "curl … /v1/messages | toolq run",
        "answer the calls of a model's response",
    ),
    ("toolq plan response.json", "show what would run, and why"),
    (
        "toolq replay transcripts/",
        "check recordings against the current tools",
    ),
    ("toolq check", "report every problem in tools.yaml"),
    ("toolq log show", "show the calls of the latest session"),
];

/// Exit codes, each with its meaning.
pub(crate) const EXIT_CODES: [(&str, &str); 10] = [
    ("0", "every call was answered; an error result is an answer"),
    (
        "1",
        "run --fail-on-error, call: a result is an error; replay: a call differs; check, plan --strict, servers, tools: problems found",
    ),
    ("2", "usage, tools.yaml, or input is wrong; nothing ran"),
    (
        "3",
        "a tool is paused, a budget is used up, a call is in doubt, an agent could not continue, or a stream broke off; every call is still answered",
    ),
    ("4", "the session log or the memory can't be used"),
    ("5", "run: there are no calls to answer"),
    (
        "6",
        "a call waits for an approval; every call is still answered",
    ),
    (
        "71",
        "the system has no threads or descriptors left; nothing ran",
    ),
    ("74", "results could not be written"),
    (
        "129, 130, 131, 143",
        "hung up, interrupted, quit, or terminated; every call is still answered",
    ),
];

/// Width of the longest command, in columns.
const COMMAND_WIDTH: usize = 9;
/// Width of the lines after the flags, in columns. clap would wrap a longer line without its indentation.
const AFTER_HELP_WIDTH: usize = 80;

pub(super) fn after_help() -> String {
    let (examples, codes) = (format_rows(&EXAMPLES, 33), format_rows(&EXIT_CODES, 3));
    format!("Examples:\n{examples}\nExit codes:\n{}", codes.trim_end())
}

/// Formats terms of up to `term_width` columns, each followed by its meaning. A longer term has a line of its own.
fn format_rows(rows: &[(&str, &str)], term_width: usize) -> String {
    let indent = " ".repeat(2 + term_width + 1);
    let mut text = String::new();
    for (term, meaning) in rows {
        let mut line = format!("  {term:term_width$} ");
        if term.len() > term_width {
            text += line.trim_end();
            text.push('\n');
            line.clone_from(&indent);
        }
        for word in meaning.split(' ') {
            if line.len() + word.len() > AFTER_HELP_WIDTH && line.trim_start() != "" {
                text += line.trim_end();
                text.push('\n');
                line.clone_from(&indent);
            }
            line += word;
            line.push(' ');
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns the command with directions in place of its help, which clap prints on stderr where a command is missing.
pub(super) fn show_first_steps(mut command: Command) -> Command {
    let usage = command.render_usage();
    command.override_help(format!("{FIRST_STEPS}\n\n{usage}"))
}

/// Returns the command with a help that lists its subcommands in groups, which clap doesn't have.
pub(super) fn group_commands(command: Command) -> Command {
    let groups = COMMAND_GROUPS.map(|(heading, names)| {
        let commands = names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
            .filter(|subcommand| !subcommand.is_hide_set());
        let abouts: Vec<(&str, String)> = commands
            .map(|subcommand| {
                let about = subcommand.get_about().map(ToString::to_string);
                (subcommand.get_name(), about.unwrap_or_default())
            })
            .collect();
        let rows: Vec<(&str, &str)> = abouts
            .iter()
            .map(|(name, about)| (*name, &**about))
            .collect();
        match &*rows {
            [] => String::new(),
            rows => format!("{heading}:\n{}\n", format_rows(rows, COMMAND_WIDTH)),
        }
    });
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups.concat()
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::args::ProgramArguments;

    #[test]
    fn the_texts_fit_a_narrow_terminal() {
        let text = after_help();
        for line in text.lines().chain(FIRST_STEPS.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(
            text.contains("\n  74  results could not be written\n"),
            "{text}"
        );
        assert!(
            text.contains("\n  129, 130, 131, 143\n      hung up"),
            "{text}"
        );
    }

    #[test]
    fn every_command_that_is_shown_is_in_a_group() {
        let program = ProgramArguments::command();
        let shown: BTreeSet<&str> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: BTreeSet<&str> = COMMAND_GROUPS
            .into_iter()
            .flat_map(|(_, names)| names)
            .copied()
            .collect();
        if cfg!(not(feature = "nats")) {
            grouped.remove("queue");
        }
        assert_eq!(shown, grouped);
    }

    #[test]
    fn each_command_has_one_line_of_60_columns() {
        let program = ProgramArguments::command();
        for command in program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let about = command.get_about().unwrap().to_string();
            let row = format_rows(&[(command.get_name(), &about)], COMMAND_WIDTH);
            assert!(row.trim_end().chars().count() <= 60, "{row}");
        }
    }
}
