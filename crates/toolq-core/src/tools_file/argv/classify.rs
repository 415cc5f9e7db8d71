//! Classifies the elements of an argument list as program names, code or data. Values from the input must not become
//! part of a program name or of code, since they would be executed.
//!
//! This relies on the option conventions of well-known programs. It can't know every program that executes its
//! arguments: one that isn't listed is assumed to treat them as data.

mod exec_options;
mod interpreter_code;
mod risky_arguments;
#[cfg(test)]
mod tests;

use crate::tools_file::argv::classify::exec_options::{
    ExecProgram, find_exec_program, find_fd_exec_program,
};
use crate::tools_file::argv::classify::interpreter_code::mark_code;
use crate::tools_file::argv::classify::risky_arguments::{mark_operands, mark_risky_arguments};
use crate::tools_file::argv::interpreters::find_interpreter;
use crate::tools_file::argv::risky_programs::find_risky_program;
use crate::tools_file::argv::steering_variables::is_steering_variable;
use crate::tools_file::argv::wrappers::{OptionForm, Wrapper, base_name, find_wrapper};

/// The role of an element of `argv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgRole {
    /// The name of a program.
    Program,
    /// Code that a program executes.
    Code,
    /// The file that an interpreter executes, if its name contains a value from the input.
    Script,
    /// A text that some values turn into code: only values of a plain form are data.
    PlainText,
    /// The same, but a path is data, too.
    PlainTextOrPath,
    /// Anything else.
    Data,
}

/// Returns the role of each element of `argv`, in order.
pub(crate) fn classify_args(argv: &[&str]) -> Vec<ArgRole> {
    let mut roles = vec![ArgRole::Data; argv.len()];
    mark_program(argv, 0, &mut roles);
    roles
}

/// Marks the program at `index` and everything that it executes.
fn mark_program(argv: &[&str], index: usize, roles: &mut [ArgRole]) {
    if let Some(program) = argv.get(index) {
        mark_program_named(program, argv, index, roles);
    }
}

/// Does the same for a program whose name is only a part of the element at `index`.
fn mark_program_named(program: &str, argv: &[&str], index: usize, roles: &mut [ArgRole]) {
    if roles[index] == ArgRole::Program {
        return;
    }
    roles[index] = ArgRole::Program;
    let name = base_name(program);
    let after = index + 1;
    if let Some(interpreter) = find_interpreter(&name) {
        mark_code(interpreter, argv, after, roles);
        if interpreter.opens_operands(&argv[after..]) {
            mark_operands(argv, after, ArgRole::PlainText, roles);
        }
    }
    let wrapper = find_wrapper(&name, argv, after);
    if let Some((wrapper, from)) = wrapper {
        mark_wrapped_program(wrapper, argv, from, roles);
    }
    if let Some(risky) = find_risky_program(&name) {
        mark_risky_arguments(risky, argv, after, roles);
    }
    match name.as_str() {
        "env" => mark_option_code(argv, after, &["-S", "--split-string"], roles),
        "find" | "gfind" | "bfs" => mark_exec_programs(find_exec_program, argv, after, roles),
        "fd" | "fdfind" => mark_exec_programs(find_fd_exec_program, argv, after, roles),
        // These join their operands into one shell command.
        "ssh" | "eval" | "watch" => roles[after..].fill(ArgRole::Code),
        "tmux"
            if argv[after..]
                .iter()
                .any(|element| TMUX_COMMANDS.contains(element)) =>
        {
            roles[after..].fill(ArgRole::Code);
        }
        "git" => mark_git_commands(argv, after, roles),
        "npx" | "npm" | "pnpm" => mark_option_code(argv, after, &["-c", "--call"], roles),
        "run-parts" => mark_operands(argv, after, ArgRole::Script, roles),
        // `parallel` quotes the arguments after `:::`.
        "parallel" => {
            let quoted = argv[after..].iter().position(|e| e.starts_with(":::"));
            let end = quoted.map_or(argv.len(), |length| after + length);
            roles[after..end].fill(ArgRole::Code);
        }
        _ => {}
    }
    mark_interpreters(argv, after, wrapper.is_some(), roles);
}

/// Commands of tmux that run a shell command, or type one.
const TMUX_COMMANDS: [&str; 13] = [
    "new-session",
    "new",
    "new-window",
    "neww",
    "split-window",
    "splitw",
    "run-shell",
    "run",
    "if-shell",
    "pipe-pane",
    "send-keys",
    "send",
    "display-popup",
];

/// Marks what subcommands of git run.
fn mark_git_commands(argv: &[&str], from: usize, roles: &mut [ArgRole]) {
    let position = |name: &str| argv[from..].iter().position(|element| *element == name);
    if position("rebase").is_some() || position("difftool").is_some() {
        mark_option_code(argv, from, &["-x"], roles);
    }
    if let (Some(_), Some(run)) = (position("bisect"), position("run")) {
        mark_program(argv, from + run + 1, roles);
    }
    if let (Some(_), Some(each)) = (position("submodule"), position("foreach")) {
        roles[from + each + 1..].fill(ArgRole::Code);
    }
    if position("filter-branch").is_some() {
        roles[from..].fill(ArgRole::Code);
    }
}

/// Marks interpreters after options that aren't known here, as in `sudo -u root sh -c CODE` and
/// `docker exec box sh -c CODE`. After a wrapper the name is enough; elsewhere, an option that takes code must follow.
fn mark_interpreters(argv: &[&str], from: usize, is_wrapper: bool, roles: &mut [ArgRole]) {
    for index in from..argv.len() {
        let Some(interpreter) = find_interpreter(&base_name(argv[index])) else {
            continue;
        };
        let next = argv.get(index + 1);
        if is_wrapper || next.is_some_and(|next| interpreter.runs_next(next)) {
            mark_program(argv, index, roles);
        }
    }
}

/// Marks each of these options, and the element after it, as code.
fn mark_option_code(argv: &[&str], from: usize, options: &[&str], roles: &mut [ArgRole]) {
    for index in from..argv.len() {
        if options.iter().any(|option| argv[index].starts_with(option)) {
            roles[index] = ArgRole::Code;
            if let Some(next) = roles.get_mut(index + 1) {
                *next = ArgRole::Code;
            }
        }
    }
}

/// Marks the programs that `find` or `fd` starts for the files that it finds. `find_program` tells where an option has its
/// program.
fn mark_exec_programs(
    find_program: fn(&str) -> Option<ExecProgram<'_>>,
    argv: &[&str],
    from: usize,
    roles: &mut [ArgRole],
) {
    for index in from..argv.len() {
        match find_program(argv[index]) {
            Some(ExecProgram::Next) => mark_program(argv, index + 1, roles),
            Some(ExecProgram::Attached(program)) => {
                mark_program_named(program, argv, index, roles);
            }
            None => {}
        }
    }
}

/// Marks the program that a wrapper runs, after the wrapper's own options and operands, and the variables before it
/// that decide what runs.
fn mark_wrapped_program(wrapper: &Wrapper, argv: &[&str], from: usize, roles: &mut [ArgRole]) {
    let (mut index, mut in_options, mut operands) = (from, true, wrapper.operands);
    while index < argv.len() {
        let element = argv[index];
        let variable = element
            .split_once('=')
            .filter(|(name, _)| wrapper.takes_variables && !name.contains(['{', '/', '-']));
        if in_options && element.starts_with('-') && element.len() > 1 {
            in_options = element != "--";
            if wrapper.option_form(element) == OptionForm::WithNext {
                index += 1;
            }
        } else if let Some((name, _)) = variable {
            if is_steering_variable(name) {
                roles[index] = ArgRole::Code;
            }
        } else if operands == 0 {
            return mark_program(argv, index, roles);
        } else {
            operands -= 1;
        }
        index += 1;
    }
}
