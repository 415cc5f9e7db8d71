//! Marks the arguments by which programs that aren't interpreters run something.

use crate::tools_file::argv::classify::ArgRole;
use crate::tools_file::argv::risky_programs::{
    OperandRisk, OptionMatch, RiskyProgram, match_option,
};

/// Marks the options and operands of a program that run something.
pub(super) fn mark_risky_arguments(
    risky: &RiskyProgram,
    argv: &[&str],
    from: usize,
    roles: &mut [ArgRole],
) {
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
pub(super) fn mark_operands(argv: &[&str], from: usize, role: ArgRole, roles: &mut [ArgRole]) {
    for index in from..argv.len() {
        if argv[index].contains('{')
            && !argv[index].starts_with('-')
            && roles[index] == ArgRole::Data
        {
            roles[index] = role;
        }
    }
}
