//! Options of `find` and `fd` that start a program for the files that they find.

/// Where such an option has the name of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExecProgram<'a> {
    /// In the next element.
    Next,
    /// In the same element.
    Attached(&'a str),
}

/// Returns where an element of `find` has a program, if it is an option that starts one.
pub(super) fn find_exec_program(element: &str) -> Option<ExecProgram<'_>> {
    let starts_program = matches!(element, "-exec" | "-execdir" | "-ok" | "-okdir");
    starts_program.then_some(ExecProgram::Next)
}

/// Returns where an element of `fd` has a program, if it is an option that starts one. Its options can have their value in
/// the same element, and short ones can be in a cluster: `-x`, `-HX`, `-xPROGRAM`, `--exec-batch=PROGRAM`.
pub(super) fn find_fd_exec_program(element: &str) -> Option<ExecProgram<'_>> {
    /// The short options of `fd` whose value is the rest of the cluster.
    const LETTERS_WITH_VALUE: &str = "dteESocjC";
    if let Some(option) = element.strip_prefix("--") {
        let (name, program) = match option.split_once('=') {
            Some((name, program)) => (name, ExecProgram::Attached(program)),
            None => (option, ExecProgram::Next),
        };
        return matches!(name, "exec" | "exec-batch").then_some(program);
    }
    let cluster = element.strip_prefix('-')?;
    let ends = |letter: char| matches!(letter, 'x' | 'X') || LETTERS_WITH_VALUE.contains(letter);
    let (_, value) = cluster.split_once(ends)?;
    let letter = cluster[..cluster.len() - value.len()].chars().last()?;
    if LETTERS_WITH_VALUE.contains(letter) {
        return None;
    }
    Some(match value.strip_prefix('=').unwrap_or(value) {
        "" => ExecProgram::Next,
        program => ExecProgram::Attached(program),
    })
}
