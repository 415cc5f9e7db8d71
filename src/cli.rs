//! The command line: which commands there are, and how it is parsed.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{
    ArgMatches, Args, ColorChoice, CommandFactory as _, FromArgMatches, Parser, Subcommand,
    ValueEnum as _,
};
use derive_more::{Deref, DerefMut};

use crate::args::CommonFlags;
use crate::commands::approvals::ApprovalsArguments;
use crate::commands::call::CallArguments;
use crate::commands::check::CheckArguments;
use crate::commands::complete::CompleteArguments;
use crate::commands::generate::GenerateArguments;
use crate::commands::init::InitArguments;
use crate::commands::log::LogArguments;
use crate::commands::plan::PlanArguments;
use crate::commands::queue::QueueArguments;
use crate::commands::replay::arguments::ReplayArguments;
use crate::commands::run::arguments::RunArguments;
use crate::commands::serve::ServeArguments;
use crate::commands::servers::ServersArguments;
use crate::commands::tools::ToolsArguments;
use crate::context::read_environment;
use crate::help::{COMMAND_WIDTH, after_help, format_rows};
use crate::output::color_policy;
use toolq_core::text::suggest_name;

/// Answer a language model's tool calls.
///
/// toolq reads the `tool_use` blocks of a model's response, decides which calls can run in parallel, runs them as
/// declared in tools.yaml, and writes one `tool_result` per call, in call order.
#[derive(Debug, Parser)]
#[command(name = "toolq", version, propagate_version = true, max_term_width = 100, args_override_self = true, after_help = after_help())]
pub struct ProgramArguments {
    // Listed after the arguments of a command.
    #[command(flatten, next_display_order = 100)]
    pub common: CommonFlags,
    #[command(subcommand)]
    pub command: Command,
}

// clap would take a doc comment for the description of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the tool calls of a model's response
    Run(Deferred<RunArguments>),
    /// Show what would run, in which batches, and why
    Plan(Deferred<PlanArguments>),
    /// Run one call of a tool or of an agent
    Call(Deferred<CallArguments>),
    /// Check recordings against the current tools
    Replay(Deferred<ReplayArguments>),
    /// Create a tools.yaml to start from
    Init(Deferred<InitArguments>),
    /// Report problems in tools.yaml or on this machine
    Check(Deferred<CheckArguments>),
    /// Print the tool declarations for a model
    Tools(Deferred<ToolsArguments>),
    /// Compare the tools of servers with tools.lock
    Servers(Deferred<ServersArguments>),
    /// Serve the tools to MCP clients
    Serve(Deferred<ServeArguments>),
    /// List, approve and deny the calls that wait
    Approvals(Deferred<ApprovalsArguments>),
    /// Inspect session logs, and resolve calls in doubt
    Log(Deferred<LogArguments>),
    /// Have turns answered by many machines, over NATS
    #[command(hide = cfg!(not(feature = "nats")))]
    Queue(Deferred<QueueArguments>),
    /// Print a generated file: a schema, shell completions, or the man page
    #[command(hide = true)]
    Generate(Deferred<GenerateArguments>),
    /// Print what can complete a command line, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Complete(Deferred<CompleteArguments>),
}

/// The arguments of a command. clap builds them when it has found the command's name: building those of all commands takes
/// longer than everything else that happens before a command starts.
#[derive(Debug, Deref, DerefMut)]
pub struct Deferred<T>(T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(|command| {
            // Arguments that `T` flattens may bring a description of their own.
            let about = Resettable::from(command.get_about().cloned());
            let long_about = Resettable::from(command.get_long_about().cloned());
            T::augment_args(command).about(about).long_about(long_about)
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Parses the arguments, of which the first is the program's name.
///
/// # Errors
/// The usage is wrong, or `--help` or `--version` was given: then the error is the text to print.
pub fn parse_arguments(arguments: &[OsString]) -> Result<ProgramArguments, clap::Error> {
    // clap prints help and errors before it knows the flags.
    let color = find_color(arguments).unwrap_or(ColorChoice::Auto);
    let color = color_policy(color, &read_environment());
    let command = ProgramArguments::command().color(color);
    // Dropping it would take longer than everything that clap does with it.
    let command = Box::leak(Box::new(group_commands(command)));
    let mut matches = command.try_get_matches_from_mut(arguments);
    let lacks_command = |error: &clap::Error| {
        error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            && std::ptr::eq(find_subcommand(command, arguments), command)
    };
    if matches.as_ref().is_err_and(lacks_command) {
        let usage = command.render_usage();
        *command = std::mem::take(command).override_help(format!("{FIRST_STEPS}\n\n{usage}"));
        matches = command.try_get_matches_from_mut(arguments);
    }
    let matches = matches.map_err(|error| {
        // Help and version are errors, too.
        if !error.use_stderr() {
            return error;
        }
        command.build();
        let error = remove_far_suggestion(error, command, arguments);
        suggest_command(error, command, arguments)
    })?;
    let mut parsed =
        ProgramArguments::from_arg_matches(&matches).map_err(|error| error.format(command))?;
    if let Command::Check(check) = &mut parsed.command
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
    command: &clap::Command,
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

/// What other programs call a command or a flag, and what leads to it here.
const OTHER_NAMES: [(&[&str], &str); 11] = [
    (&["validate", "lint"], "to check tools.yaml: 'toolq check'"),
    (
        &["doctor"],
        "to see what is missing here: 'toolq check --machine'",
    ),
    (
        &["exec", "execute", "start"],
        "to answer calls: 'toolq run'",
    ),
    (
        &["resume", "continue", "retry"],
        "what is missing runs when its input is run again: 'toolq run FILE'",
    ),
    (
        &["dry-run", "dryrun", "preview", "--dry-run"],
        "to see what would run: 'toolq plan'",
    ),
    (&["test", "verify"], "to check recordings: 'toolq replay'"),
    (
        &["list", "ls"],
        "to list the tools: 'toolq tools --format table'",
    ),
    (
        &["logs", "history", "status"],
        "to list the sessions: 'toolq log list'",
    ),
    (&["mcp"], "to serve the tools to MCP clients: 'toolq serve'"),
    (&["new", "create"], "to write a tools.yaml: 'toolq init'"),
    (
        &["import"],
        "to import the tools of a file: 'toolq init --from FILE'",
    ),
];

/// Suggests what was probably meant: `toolq run FILE` if there is a path where a command belongs, a command that has another name
/// elsewhere, or one that belongs to another.
fn suggest_command(
    mut error: clap::Error,
    command: &clap::Command,
    arguments: &[OsString],
) -> clap::Error {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (name, flag) = (
        text(ContextKind::InvalidSubcommand),
        text(ContextKind::InvalidArg),
    );
    let known = |given: &str| {
        let mut names = OTHER_NAMES.iter();
        let (_, tip) = names.find(|(names, _)| names.contains(&given))?;
        Some((*tip).to_owned())
    };
    let of_another = |given: &str| {
        let mut commands = command.get_subcommands();
        let owner = commands.find(|owner| owner.find_subcommand(given).is_some())?;
        let owner = owner.get_name();
        Some(format!(
            "a command of 'toolq {owner}': 'toolq {owner} {given}'"
        ))
    };
    let is_path = |given: &&str| given.contains(['.', '/']);
    let path = name.filter(is_path);
    let path = path.map(|path| format!("to answer the calls in a file: 'toolq run {path}'"));
    let source = text(ContextKind::InvalidValue).filter(is_path);
    let source = source.filter(|_| find_subcommand(command, arguments).get_name() == "init");
    let source =
        source.map(|path| format!("to import the tools of a file: 'toolq init --from {path}'"));
    let tip = path.or(source).or_else(|| known(name.or(flag)?));
    if let Some(tip) = tip.or_else(|| of_another(name?)) {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Returns the innermost subcommand that the arguments name.
fn find_subcommand<'c>(command: &'c clap::Command, arguments: &[OsString]) -> &'c clap::Command {
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

/// Returns the command with a help that lists its subcommands in groups, which clap doesn't have.
fn group_commands(command: clap::Command) -> clap::Command {
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

#[cfg(test)]
mod help_tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;

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
            .map(clap::Command::get_name)
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
