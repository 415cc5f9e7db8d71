//! Arguments of a command that are only built if the command is given: building those of all commands takes longer than
//! everything else that happens before a command starts.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The arguments `T` of a command. With `DEFERRED`, clap builds them when it has found the command's name. Without, they are
/// there from the beginning, for what describes all commands.
#[derive(Debug)]
pub struct CommandArguments<T, const DEFERRED: bool>(Box<T>);

impl<T, const DEFERRED: bool> Deref for CommandArguments<T, DEFERRED> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args, const DEFERRED: bool> Args for CommandArguments<T, DEFERRED> {
    fn augment_args(command: Command) -> Command {
        if DEFERRED {
            command.defer(add_arguments::<T>)
        } else {
            T::augment_args(command)
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

/// Adds the arguments of `T` to a command, which keeps its own description, since arguments that `T` flattens may bring
/// theirs. The global flags, which clap has already added, move after the new arguments, where the help of every command
/// lists them.
fn add_arguments<T: Args>(command: Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    let long_about = Resettable::from(command.get_long_about().cloned());
    let global: Vec<Id> = command.get_arguments().map(Arg::get_id).cloned().collect();
    let command = T::augment_args(command).about(about).long_about(long_about);
    global
        .iter()
        .fold(command, |command, id| command.mut_arg(id, |flag| flag))
}

impl<T: FromArgMatches, const DEFERRED: bool> FromArgMatches for CommandArguments<T, DEFERRED> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Box::new).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::args::ProgramArguments;

    /// A command has the same help whether its arguments were built at once or later.
    #[test]
    fn help_does_not_depend_on_when_arguments_are_built() {
        let mut deferred = ProgramArguments::<true>::command();
        let mut complete = ProgramArguments::<false>::command();
        deferred.build();
        complete.build();
        assert!(complete.get_subcommands().count() > 10);
        for command in complete.get_subcommands() {
            let same = deferred.find_subcommand(command.get_name()).unwrap();
            let help = same.clone().render_long_help().to_string();
            assert_eq!(help, command.clone().render_long_help().to_string());
        }
    }
}
