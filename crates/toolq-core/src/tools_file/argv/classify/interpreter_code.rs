//! Marks the code that interpreters execute.

use crate::tools_file::argv::classify::ArgRole;
use crate::tools_file::argv::interpreters::Interpreter;
use crate::tools_file::argv::risky_programs::OptionMatch;

/// Marks the code that an interpreter executes or, if there is none, its script file.
pub(super) fn mark_code(
    interpreter: &Interpreter,
    argv: &[&str],
    from: usize,
    roles: &mut [ArgRole],
) {
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
