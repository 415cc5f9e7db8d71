//! Which elements of an argument list are a program, and which are the text of one: there no value of the input may
//! stand, for it would be run.
//!
//! This reads the option conventions of well-known programs. It cannot know every program that runs its arguments; one
//! that is not listed here is taken to read them only.

use crate::tools_file::argv::interpreters::{Interpreter, interpreter};
use crate::tools_file::argv::wrappers::{base_name, operands_before_program};

/// What an element of `argv` is to the programs in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The name of a program.
    Program,
    /// A text that a program runs.
    Code,
    /// The file that an interpreter runs, as far as a value of the input has a part in its name.
    Script,
    /// Something that a program reads.
    Data,
}

/// The role of each element of `argv`, in order.
pub(crate) fn roles(argv: &[&str]) -> Vec<Role> {
    let mut roles = vec![Role::Data; argv.len()];
    mark_program(argv, 0, &mut roles);
    roles
}

/// Marks the program at `at` and what it runs.
fn mark_program(argv: &[&str], at: usize, roles: &mut [Role]) {
    if at >= argv.len() || roles[at] == Role::Program {
        return;
    }
    roles[at] = Role::Program;
    let name = base_name(argv[at]);
    let behind = at + 1;
    if let Some(interpreter) = interpreter(&name) {
        mark_code(interpreter, argv, behind, roles);
    }
    let operands = operands_before_program(&name);
    if let Some(wrapped) = operands.and_then(|operands| wrapped_program(argv, behind, operands)) {
        mark_program(argv, wrapped, roles);
    }
    match name.as_str() {
        "env" => mark_behind(argv, behind, &["-S", "--split-string"], roles),
        "find" | "fd" => mark_started(argv, behind, roles),
        // They join their operands into one text for a shell.
        "ssh" | "eval" | "watch" => roles[behind..].fill(Role::Code),
        // What stands behind `:::` is quoted for it.
        "parallel" => {
            let quoted = argv[behind..].iter().position(|e| e.starts_with(":::"));
            let end = quoted.map_or(argv.len(), |length| behind + length);
            roles[behind..end].fill(Role::Code);
        }
        _ => {}
    }
    mark_interpreters(argv, behind, operands.is_some(), roles);
}

/// Marks interpreters that are started behind options which are not known here, as in `sudo -u root sh -c TEXT` and
/// `docker exec box sh -c TEXT`. Behind a wrapper the name alone tells, elsewhere an option that runs a text must follow.
fn mark_interpreters(argv: &[&str], from: usize, is_wrapper: bool, roles: &mut [Role]) {
    for index in from..argv.len() {
        let Some(interpreter) = interpreter(&base_name(argv[index])) else {
            continue;
        };
        let next = argv.get(index + 1);
        if is_wrapper || next.is_some_and(|next| interpreter.runs_next(next)) {
            mark_program(argv, index, roles);
        }
    }
}

/// Marks what stands in or behind an option as a text that is run.
fn mark_behind(argv: &[&str], from: usize, options: &[&str], roles: &mut [Role]) {
    for index in from..argv.len() {
        if options.iter().any(|option| argv[index].starts_with(option)) {
            roles[index] = Role::Code;
            if let Some(next) = roles.get_mut(index + 1) {
                *next = Role::Code;
            }
        }
    }
}

/// Marks the programs that `find` starts for each file.
fn mark_started(argv: &[&str], from: usize, roles: &mut [Role]) {
    const STARTING: [&str; 7] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"];
    for index in from..argv.len() {
        if STARTING.contains(&argv[index]) {
            mark_program(argv, index + 1, roles);
        }
    }
}

/// Where a wrapper's own options and operands end: numbers are taken for values of options, `A=b` for a variable.
fn wrapped_program(argv: &[&str], from: usize, mut operands: usize) -> Option<usize> {
    for (index, element) in argv.iter().enumerate().skip(from) {
        let is_value = element.starts_with(|c: char| c.is_ascii_digit());
        let is_variable = element
            .split_once('=')
            .is_some_and(|(name, _)| !name.contains(['{', '/']));
        if element.starts_with('-') || is_variable || (is_value && operands == 0) {
            continue;
        }
        if operands == 0 {
            return Some(index);
        }
        operands -= 1;
    }
    None
}

/// Marks what an interpreter runs, up to the file that it would run instead.
fn mark_code(interpreter: &Interpreter, argv: &[&str], from: usize, roles: &mut [Role]) {
    let mut operand_is_code = interpreter.runs_operand();
    let mut operand_is_script = interpreter.runs_file();
    let (mut options, mut before) = (true, "");
    for index in from..argv.len() {
        let element = argv[index];
        if options && interpreter.is_option(element, operand_is_code) {
            if interpreter.ends_reading(element) {
                return mark_script(argv, index + 1, roles);
            }
            operand_is_script &= !interpreter.runs_no_file(element);
            options = !matches!(element, "--" | "-");
            operand_is_code = mark_option(interpreter, element, index, operand_is_code, roles);
        } else if !(options && interpreter.takes_value(before, element, &argv[index + 1..])) {
            if operand_is_code {
                roles[index] = Role::Code;
            } else if operand_is_script {
                mark_script(argv, index, roles);
            }
            if interpreter.ends_at_operand() {
                return;
            }
        }
        before = element;
    }
}

/// Marks the file that an interpreter runs, where a value decides which.
fn mark_script(argv: &[&str], at: usize, roles: &mut [Role]) {
    if argv.get(at).is_some_and(|element| element.contains('{')) {
        roles[at] = Role::Script;
    }
}

/// Marks an option that says what is run, and what it runs. Says whether the first operand is a text that is run.
fn mark_option(
    interpreter: &Interpreter,
    element: &str,
    index: usize,
    operand_is_code: bool,
    roles: &mut [Role],
) -> bool {
    if interpreter.runs_next(element) {
        roles[index] = Role::Code;
        if interpreter.runs_operand_after_option() {
            return true;
        }
        let texts = if interpreter.runs_all_behind() {
            usize::MAX
        } else {
            1
        };
        let behind = roles.iter_mut().skip(index + 1);
        behind.take(texts).for_each(|role| *role = Role::Code);
        return false;
    }
    if interpreter.runs_rest_of(element) {
        roles[index] = Role::Code;
        return false;
    }
    operand_is_code && !interpreter.names_file(element)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P, C, S and - for program, code, script and data, element by element.
    fn shown(argv: &[&str]) -> String {
        let letter = |role: &Role| match role {
            Role::Program => 'P',
            Role::Code => 'C',
            Role::Script => 'S',
            Role::Data => '-',
        };
        roles(argv).iter().map(letter).collect()
    }

    /// FAULTS 35.
    #[test]
    fn the_text_of_a_program_is_found() {
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
            ("xargs -I % sh -c {x}", "P-PPCC"),
            ("sudo -u root bash -o pipefail -c {x}", "P-PP--CC"),
            ("docker exec box sh -c {x}", "P--PCC"),
            ("sh -c exec -- bash -c {x}", "PCC-PCC"),
            ("grep bash {x}", "P--"),
            ("find {x} -exec sh -c {y} ;", "P--PCC-"),
            ("ssh host cat {x}", "PCCC"),
            ("grep -c {x}", "P--"),
            ("jq -c {x}", "P--"),
            // A shell takes more options behind -c, and runs its first operand.
            ("sh -c -- {x}", "PC-C"),
            ("sh -c - {x} {y}", "PC-C-"),
            ("bash -c -e +x {x} {y}", "PC--C-"),
            ("bash -c -o pipefail -- {x}", "PC---C"),
            ("bash --rcfile /etc/rc -c {x}", "P--CC"),
            ("fish -C {x} -c {y}", "PCCCC"),
            ("deno eval --ext=ts {x}", "PC-C"),
            // Values of options that look like files end nothing.
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
            // The file that is run, where a value says which.
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
            ("perl -pe CODE {x}", "PCC-"),
            ("sed -f script {x}", "P---"),
            ("awk -f prog.awk {x}", "P---"),
            ("su {x}", "P-"),
            ("timeout 5 ruby {x}", "P-PS"),
        ] {
            let argv: Vec<&str> = argv.split(' ').collect();
            assert_eq!(shown(&argv), roles, "{argv:?}");
        }
    }
}
