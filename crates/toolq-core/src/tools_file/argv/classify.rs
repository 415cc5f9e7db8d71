//! Classifies the elements of an argument list as program names, code or data. Values from the input must not become
//! part of a program name or of code, since they would be executed.
//!
//! This relies on the option conventions of well-known programs. It can't know every program that executes its
//! arguments: one that isn't listed is assumed to treat them as data.

use crate::tools_file::argv::interpreters::{Interpreter, find_interpreter};
use crate::tools_file::argv::risky_programs::{
    OperandRisk, OptionMatch, RiskyProgram, find_risky_program, match_option,
};
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
    if index >= argv.len() || roles[index] == ArgRole::Program {
        return;
    }
    roles[index] = ArgRole::Program;
    let name = base_name(argv[index]);
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
        "find" | "fd" => mark_exec_programs(argv, after, roles),
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

/// Marks the programs that `find` or `fd` starts for each file.
fn mark_exec_programs(argv: &[&str], from: usize, roles: &mut [ArgRole]) {
    const EXEC_OPTIONS: [&str; 7] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"];
    for index in from..argv.len() {
        if EXEC_OPTIONS.contains(&argv[index]) {
            mark_program(argv, index + 1, roles);
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

/// Marks the options and operands of a program that run something.
fn mark_risky_arguments(risky: &RiskyProgram, argv: &[&str], from: usize, roles: &mut [ArgRole]) {
    let mut is_leading = true;
    let mut index = from;
    while index < argv.len() {
        let element = argv[index];
        let leading = is_leading
            .then(|| match_option(element, risky.leading_code_options))
            .flatten();
        match leading.or_else(|| match_option(element, risky.code_options)) {
            Some(OptionMatch::HasValue) => roles[index] = ArgRole::Code,
            Some(OptionMatch::NextIsValue) => {
                index += 1;
                if let Some(role) = roles.get_mut(index) {
                    *role = ArgRole::Code;
                }
            }
            // The value of an option such as `git -C DIR` doesn't end them, but an operand does.
            None => is_leading &= element.starts_with('-') || argv[index - 1] == "-C",
        }
        index += 1;
    }
    match risky.operands {
        OperandRisk::None => {}
        OperandRisk::UnlessPlain => mark_operands(argv, from, ArgRole::PlainText, roles),
        OperandRisk::UnlessPlainOrPath => {
            mark_operands(argv, from, ArgRole::PlainTextOrPath, roles);
        }
        OperandRisk::SecondUnless(option) => {
            let is_operand = |index: &usize| !argv[*index].starts_with('-');
            let operands: Vec<usize> = (from..argv.len()).filter(is_operand).collect();
            if !argv[from..].contains(&option) {
                for index in operands.into_iter().skip(1) {
                    roles[index] = ArgRole::Code;
                }
            }
        }
    }
}

/// Gives `role` to each operand that contains a value and is data so far.
fn mark_operands(argv: &[&str], from: usize, role: ArgRole, roles: &mut [ArgRole]) {
    for index in from..argv.len() {
        if argv[index].contains('{')
            && !argv[index].starts_with('-')
            && roles[index] == ArgRole::Data
        {
            roles[index] = role;
        }
    }
}

/// Marks the code that an interpreter executes or, if there is none, its script file.
fn mark_code(interpreter: &Interpreter, argv: &[&str], from: usize, roles: &mut [ArgRole]) {
    let mut operand_is_code = interpreter.runs_operand();
    let mut operand_is_script = interpreter.runs_file();
    let (mut in_options, mut previous) = (true, "");
    for index in from..argv.len() {
        let element = argv[index];
        if in_options && interpreter.is_option(element, operand_is_code) {
            if interpreter.names_module(element) {
                return mark_script(argv, index + 1, roles);
            }
            mark_loaded_file(interpreter, argv, index, roles);
            operand_is_script &= !interpreter.excludes_script(element);
            in_options = !matches!(element, "--" | "-");
            operand_is_code = mark_option(interpreter, element, index, operand_is_code, roles);
            if interpreter.has_chosen_option(element) && roles[index] == ArgRole::Data {
                roles[index] = ArgRole::Code;
            }
        } else if !(in_options
            && interpreter.is_option_value(previous, element, &argv[index + 1..]))
        {
            if operand_is_code {
                roles[index] = ArgRole::Code;
            } else if operand_is_script {
                mark_script(argv, index, roles);
            }
            if interpreter.stops_at_operand() {
                return;
            }
        }
        previous = element;
    }
}

/// Marks the file or module that an option names, if that contains a value from the input.
fn mark_loaded_file(interpreter: &Interpreter, argv: &[&str], index: usize, roles: &mut [ArgRole]) {
    match interpreter.loading_option(argv[index]) {
        Some(OptionMatch::HasValue) => mark_script(argv, index, roles),
        Some(OptionMatch::NextIsValue) => mark_script(argv, index + 1, roles),
        None => {}
    }
}

/// Marks the file that an interpreter executes, if its name contains a value from the input.
fn mark_script(argv: &[&str], index: usize, roles: &mut [ArgRole]) {
    if argv.get(index).is_some_and(|element| element.contains('{')) {
        roles[index] = ArgRole::Script;
    }
}

/// Marks an option that takes code, and that code. Returns whether the first operand is code.
fn mark_option(
    interpreter: &Interpreter,
    element: &str,
    index: usize,
    operand_is_code: bool,
    roles: &mut [ArgRole],
) -> bool {
    if interpreter.runs_next(element) {
        roles[index] = ArgRole::Code;
        if interpreter.runs_operand_after_option() {
            return true;
        }
        let count = if interpreter.runs_all_after() {
            usize::MAX
        } else {
            1
        };
        let following = roles.iter_mut().skip(index + 1);
        following.take(count).for_each(|role| *role = ArgRole::Code);
        return false;
    }
    if interpreter.runs_inline_value(element) {
        roles[index] = ArgRole::Code;
        return false;
    }
    operand_is_code && !interpreter.names_script_file(element)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one letter per element: P for a program, C for code, S for a script and - for data.
    fn role_letters(argv: &[&str]) -> String {
        let letter = |role: &ArgRole| match role {
            ArgRole::Program => 'P',
            ArgRole::Code => 'C',
            ArgRole::Script => 'S',
            ArgRole::PlainText => 'T',
            ArgRole::PlainTextOrPath => 'F',
            ArgRole::Data => '-',
        };
        classify_args(argv).iter().map(letter).collect()
    }

    #[test]
    fn code_arguments_are_found() {
        for (argv, roles) in [
            ("cat -- {x}", "P--"),
            ("{x} a", "P-"),
            ("sh -c {x} -- {y}", "PCC--"),
            ("/bin/bash -lc {x}", "PCC"),
            ("bash -euo pipefail -c {x} a", "P--CC-"),
            ("bash -e script.sh -c {x}", "P----"),
            ("python3.12 -c {x} {y}", "PCC-"),
            ("python3 -m pip install -c {x}", "P-----"),
            ("python3 tool.py -c {x}", "P---"),
            ("perl -ne {x}", "PCC"),
            ("perl -e{x}", "PC"),
            ("node --eval={x}", "PC"),
            ("node --eval {x}", "PCC"),
            ("deno eval {x}", "PCC"),
            ("awk {x} file", "PC-"),
            ("awk -F : {x} file", "P--C-"),
            ("awk -f prog.awk {x}", "P---"),
            ("env -i A={x} sh -c {y}", "P--PCC"),
            ("env {x}", "PP"),
            ("env -S {x}", "PCC"),
            ("timeout 5 bash -c {x}", "P-PCC"),
            ("timeout 5 {x}", "P-P"),
            ("nice -n 5 cat {x}", "P--P-"),
            ("xargs -n 1 sh -c {x}", "P--PCC"),
            ("xargs -I % sh -c {x}", "P--PCC"),
            ("sudo -u root bash -o pipefail -c {x}", "P--P--CC"),
            ("docker exec box sh -c {x}", "P--PCC"),
            ("sh -c exec -- bash -c {x}", "PCC-PCC"),
            ("grep bash {x}", "P--"),
            ("find {x} -exec sh -c {y} ;", "P--PCC-"),
            ("ssh host cat {x}", "PCCC"),
            ("grep -c {x}", "P--"),
            ("jq -c {x}", "P--"),
            // A shell accepts more options after `-c` and executes its first operand.
            ("sh -c -- {x}", "PC-C"),
            ("sh -c - {x} {y}", "PC-C-"),
            ("bash -c -e +x {x} {y}", "PC--C-"),
            ("bash -c -o pipefail -- {x}", "PC---C"),
            ("bash --rcfile /etc/rc -c {x}", "P--CC"),
            ("fish -C {x} -c {y}", "PCCCC"),
            ("deno eval --ext=ts {x}", "PC-C"),
            // A value of an option that looks like a file doesn't end the options.
            ("perl -I ./lib -e {x}", "P--CC"),
            ("node -r ./hook.js -e {x}", "P--CC"),
            ("python3 -W ignore::a.B -c {x}", "P--CC"),
            ("python3 -u tool.py -c {x}", "P----"),
            ("su root -c {x}", "P-CC"),
            ("su - root -c {x}", "P--CC"),
            ("awk -- {x} file", "P-C-"),
            ("awk -F, {x} file", "P-C-"),
            ("awk -v a=b {x} file", "P--C-"),
            ("sed -n {x} file", "P-C-"),
            ("sed -e p -e {x} {y}", "PCCCC-"),
            ("sed -i  {x} file", "P--C-"),
            ("sed -f script {x}", "P---"),
            ("pwsh -NoProfile -command ls {x}", "P-CCC"),
            ("parallel echo {x} ::: {y}", "PCC--"),
            // A value from the input chooses the script file.
            ("python3 {x} {y}", "PS-"),
            ("python3 -u {x}", "P-S"),
            ("python3 -m {x} {y}", "P-S-"),
            ("python3 - {x}", "P--"),
            ("python3 tool.py {x}", "P--"),
            ("python3 -W error tool.py {x}", "P----"),
            ("sh {x}", "PS"),
            ("sh -- scripts/{x}.sh {y}", "P-S-"),
            ("sh - {x}", "P-S"),
            ("bash -eux -o pipefail {x}", "P---S"),
            ("bash -s {x}", "P--"),
            ("env A=b node {x}", "P-PS"),
            ("node --port {x} server.js", "P---"),
            ("node --inspect {x}", "P-S"),
            ("perl -w {x}", "P-S"),
            ("perl -pe CODE {x}", "PCCT"),
            ("sed -f script {x}", "P---"),
            ("awk -f prog.awk {x}", "P---"),
            ("su {x}", "P-"),
            ("timeout 5 ruby {x}", "P-PS"),
            // An option names the file or module that is run.
            ("awk -f {x} file", "P-S-"),
            ("awk -f{x} file", "PS-"),
            ("awk -F{x} -va={y} prog file", "P--C-"),
            ("sed -f {x} file", "P-S-"),
            ("sed --file={x} file", "PS-"),
            ("node -r {x} app.js", "P-S-"),
            ("node --import={x} app.js", "PS-"),
            ("perl -M{x} -e code", "PSCC"),
            ("bash --rcfile {x} -i", "P-S-"),
            ("python3 -m{x}", "PS"),
            ("java {x}", "PS"),
            ("java -jar {x}", "P-S"),
            ("java -Xmx{n}m -jar app.jar {x}", "P----"),
            ("java -cp {x} Main", "P-S-"),
            ("tclsh tool.tcl {x}", "P--"),
            ("tclsh {x}", "PS"),
            // A value chooses the option.
            ("python3 -{x} file", "PC-"),
            ("sed -n{x} p file", "PCC-"),
            ("perl -{x} file", "PC-"),
            ("node --max-old-space-size={x} app.js", "P--"),
        ] {
            let argv: Vec<&str> = argv.split(' ').collect();
            assert_eq!(role_letters(&argv), roles, "{argv:?}");
        }
    }

    /// Options of a wrapper that take a value don't hide the program.
    #[test]
    fn programs_behind_wrappers_and_options_are_found() {
        for (argv, roles) in [
            ("env -u FOO {x}", "P--P"),
            ("env -uFOO {x}", "P-P"),
            ("env -i A={x} cat {y}", "P--P-"),
            ("env PATH={x} cat", "PCP"),
            ("xargs -a f -- {x}", "P---P"),
            ("xargs -0 cat {x}", "P-P-"),
            ("flock -w 5 lock {x}", "P---P"),
            ("stdbuf -o L {x}", "P--P"),
            ("stdbuf -oL cat {x}", "P-P-"),
            ("sudo -u root -- {x}", "P---P"),
            ("sudo -nu root {x}", "P--P"),
            ("setpriv --reuid 1000 {x}", "P--P"),
            ("runuser -u nobody -- {x}", "P---P"),
            ("docker exec -it -u me box {x}", "P-----P"),
            ("docker run --rm -v a:b {x} ls", "P----P-"),
            ("docker ps {x}", "P--"),
            ("kubectl exec pod -n a -- {x}", "P-----P"),
            ("nice -n 5 {x}", "P--P"),
            ("timeout -k 1 5 {x}", "P---P"),
            ("nohup {x}", "PP"),
            ("env nice -n 5 timeout 3 {x}", "PP--P-P"),
            ("chrt -f 10 {x}", "P--P"),
            ("tar -I {x} -xf a", "P-C--"),
            ("tar --to-command={x} -xf a", "PC--"),
            ("tar -xf {x}", "P--"),
            ("git -c {x} log", "P-C-"),
            ("git -C {d} -c {x} log", "P---C-"),
            ("git commit -c {x}", "P---"),
            ("git fetch --upload-pack={x} r", "P-C-"),
            ("make {x}", "PT"),
            ("make -C {x} all", "P-C-"),
            ("vim {x}", "PF"),
            ("sqlite3 app.db {x}", "P-C"),
            ("sqlite3 -safe app.db {x}", "P---"),
            ("psql -c {x}", "P-C"),
            ("rsync -e {x} a b", "P-C--"),
            ("sort --compress-program={x} a", "PC-"),
            ("split --filter={x} a", "PC-"),
            ("find {d} -exec {x} ;", "P--P-"),
            ("choom -n 0 {x}", "P--P"),
            ("/lib64/ld-linux-x86-64.so.2 {x}", "PP"),
            ("ip netns exec a {x}", "P---P"),
            ("x86_64 {x}", "PP"),
            ("npx -c {x}", "PCC"),
            ("git rebase -x {x} main", "P-CC-"),
            ("git cherry-pick -x {x}", "P---"),
            ("git bisect run {x}", "P--P"),
            ("git submodule foreach {x}", "P--C"),
            ("tmux new-session -d {x}", "PCCC"),
            ("tmux capture-pane -t {x}", "P---"),
            ("run-parts {x}", "PS"),
            ("cargo run -- {x}", "P---"),
            // GNU programs accept the beginning of a long option.
            ("tar --use-compress={x} -cf a b", "PC---"),
            ("tar --checkpoint-a={x} -cf a b", "PC---"),
            ("zip -TT{x} a b", "PC--"),
            ("gcc {x}", "PF"),
        ] {
            let argv: Vec<&str> = argv.split(' ').collect();
            assert_eq!(role_letters(&argv), roles, "{argv:?}");
        }
    }
}
