//! What `toolq` says without arguments: what to type first.

use clap::Command;

const FIRST_STEPS: &str = "\
toolq runs the tool calls of a language model. What to type first:

  toolq init                 write a tools.yaml, and say how to try it
  toolq run response.json    answer the calls in a model's response
  toolq plan response.json   show what would run, without running anything
  toolq check --machine      report problems in tools.yaml, and what this machine lacks
  toolq --help               list all commands";

/// Returns the command with directions in place of its help, which clap prints on stderr where a command is missing.
pub(super) fn show_first_steps(mut command: Command) -> Command {
    let usage = command.render_usage();
    command.override_help(format!("{FIRST_STEPS}\n\n{usage}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_fits_a_narrow_terminal() {
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(FIRST_STEPS.lines().all(is_narrow), "{FIRST_STEPS}");
    }
}
