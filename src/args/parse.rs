//! Parses the command line, with colors as `--color` says also in help and in usage errors.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _, ValueEnum as _};

use crate::args::program_help::{group_commands, show_first_steps};
use crate::args::{Command as ProgramCommand, ProgramArguments};
use crate::environment;
use crate::output::{ColorChoice, ColorPolicy};
use toolq_core::text::suggest_name;

/// Parses the arguments, of which the first is the program's name.
///
/// # Errors
/// The usage is wrong, or `--help` or `--version` was given: then the error is the text to print.
pub fn parse_arguments(arguments: &[OsString]) -> Result<ProgramArguments, clap::Error> {
    // clap prints help and errors before it knows the flags.
    let color = find_color(arguments).unwrap_or(ColorChoice::Auto);
    let color = ColorPolicy::new(color, &environment::read());
    let command = ProgramArguments::command().color(color.into());
    let mut command = group_commands(command);
    let mut matches = command.try_get_matches_from_mut(arguments);
    let lacks_command = |error: &clap::Error| {
        error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            && std::ptr::eq(find_subcommand(&command, arguments), &raw const command)
    };
    if matches.as_ref().is_err_and(lacks_command) {
        command = show_first_steps(command);
        matches = command.try_get_matches_from_mut(arguments);
    }
    let matches =
        matches.map_err(|error| suggest_command(remove_far_suggestion(error, &command, arguments)));
    let matches =
        matches.map_err(|error| suggest_plan(suggest_from(error, &command, arguments)))?;
    let mut parsed =
        ProgramArguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if let ProgramCommand::Check(check) = &mut parsed.command
        && let Some(file) = check.file.take()
    {
        parsed.common.tools = Some(file);
    }
    Ok(parsed)
}

/// Removes a suggested flag or command that isn't similar to what was given: clap would answer `--parallel` with
/// `--all`.
fn remove_far_suggestion(
    mut error: clap::Error,
    command: &Command,
    arguments: &[OsString],
) -> clap::Error {
    for (given, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let text = |value: Option<&ContextValue>| match value {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        let given = text(error.get(given));
        let near = text(error.get(suggested));
        let given = given.first().map(|name| name.trim_start_matches('-'));
        let near = near.iter().map(|name| name.trim_start_matches('-'));
        if given.is_some_and(|given| suggest_name(given, near).is_none()) {
            error.remove(suggested);
            // The usage shows the suggested flag, too.
            let usage = find_subcommand(command, arguments).clone().render_usage();
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
    }
    error
}

/// Suggests `toolq run FILE` if there is a path where a command belongs, or the command that has another name elsewhere.
fn suggest_command(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let tip = match given.as_str() {
        path if path.contains(['.', '/']) => {
            format!("to answer the calls in a file: 'toolq run {path}'")
        }
        "validate" | "lint" | "doctor" => "to check tools.yaml: 'toolq check'".to_owned(),
        "exec" | "execute" | "start" => "to answer calls: 'toolq run'".to_owned(),
        "test" | "verify" => "to check recordings: 'toolq replay'".to_owned(),
        "list" | "ls" => "to list the tools: 'toolq tools --format table'".to_owned(),
        _ => return error,
    };
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// Suggests `toolq init --from FILE` if there is a path after `init`.
fn suggest_from(mut error: clap::Error, command: &Command, arguments: &[OsString]) -> clap::Error {
    let given = error.get(ContextKind::InvalidValue);
    if let Some(ContextValue::String(given)) = given
        && given.contains(['.', '/'])
        && find_subcommand(command, arguments).get_name() == "init"
    {
        let tip = format!("to import the tools of a file: 'toolq init --from {given}'");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Suggests `toolq plan` in the place of a flag that other programs have for it.
fn suggest_plan(mut error: clap::Error) -> clap::Error {
    let given = error.get(ContextKind::InvalidArg);
    if matches!(given, Some(ContextValue::String(given)) if given == "--dry-run") {
        let tip = "to see what would run: 'toolq plan'".to_owned();
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Returns the innermost subcommand that the arguments name.
fn find_subcommand<'c>(command: &'c Command, arguments: &[OsString]) -> &'c Command {
    let names = arguments.iter().filter_map(|argument| argument.to_str());
    names.fold(command, |innermost, name| {
        innermost.find_subcommand(name).unwrap_or(innermost)
    })
}

/// Returns the last value of `--color` among the options.
fn find_color(arguments: &[OsString]) -> Option<ColorChoice> {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    let options: Vec<_> = options.filter_map(|argument| argument.to_str()).collect();
    let mut values = options.iter().enumerate().filter_map(|(at, option)| {
        let value = match option.strip_prefix("--color")? {
            "" => options.get(at + 1).copied()?,
            value => value.strip_prefix('=')?,
        };
        ColorChoice::from_str(value, false).ok()
    });
    values.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_flag_is_suggested() {
        let message = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            parse_arguments(&arguments).unwrap_err().to_string()
        };
        assert!(!message(&["toolq", "run", "--parallel"]).contains("--all"));
        assert!(message(&["toolq", "run", "--job"]).contains("--jobs"));
        assert!(message(&["toolq", "rum"]).contains("'run'"));
    }

    #[test]
    fn a_file_in_the_place_of_a_command_is_a_case_for_run() {
        let arguments = ["toolq", "answers/response.json"].map(OsString::from);
        let message = parse_arguments(&arguments).unwrap_err().to_string();
        assert!(
            message
                .contains("tip: to answer the calls in a file: 'toolq run answers/response.json'"),
            "{message}"
        );
    }

    #[test]
    fn what_others_call_otherwise_leads_to_the_right_command() {
        for (arguments, tip) in [
            (["toolq", "run", "--dry-run"], "'toolq plan'"),
            (
                ["toolq", "init", "mine/tools.json"],
                "'toolq init --from mine/tools.json'",
            ),
        ] {
            let arguments = arguments.map(OsString::from);
            let message = parse_arguments(&arguments).unwrap_err().to_string();
            assert!(message.contains(tip), "{message}");
        }
    }

    #[test]
    fn check_takes_its_file_as_an_argument() {
        let parsed = parse_arguments(&["toolq", "check", "a.yaml"].map(OsString::from)).unwrap();
        assert_eq!(parsed.common.tools, Some("a.yaml".into()));
    }

    #[test]
    fn the_last_color_counts() {
        let find = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            find_color(&arguments)
        };
        assert_eq!(find(&["toolq", "run"]), None);
        assert_eq!(
            find(&["toolq", "--color", "never"]),
            Some(ColorChoice::Never)
        );
        assert_eq!(
            find(&["toolq", "--color=never", "run", "--color=always"]),
            Some(ColorChoice::Always)
        );
        assert_eq!(find(&["toolq", "run", "--", "--color=never"]), None);
        assert_eq!(find(&["toolq", "--colors=never", "--color"]), None);
    }
}
