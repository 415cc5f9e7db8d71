//! Finds the files that a command runs, as far as its arguments show them.

use crate::tools_file::argv::classify::{ArgRole, classify_args};
use crate::tools_file::argv::interpreters::find_interpreter;
use crate::tools_file::argv::wrapper_argv::find_handover;
use crate::tools_file::argv::wrappers::{base_name, find_wrapper};

/// A file that a command runs. Its name contains no value from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedFile<'a> {
    /// A program: a path, or a name that is looked up in `PATH`.
    Program(&'a str),
    /// A file that an interpreter reads.
    Script(&'a str),
}

/// Returns the program at the head of `argv` and, if that is known to run another one on this machine, that one, too. An
/// interpreter is followed by its script.
pub fn find_started_files<'a>(argv: &[&'a str]) -> Vec<StartedFile<'a>> {
    let roles = classify_args(argv);
    let mut files = Vec::new();
    let mut next = Some(0);
    while let Some(index) = next.filter(|index| *index < argv.len()) {
        let program = argv[index];
        if !is_literal(program) {
            break;
        }
        files.push(StartedFile::Program(program));
        let name = base_name(program);
        if find_interpreter(&name).is_some() {
            files.extend(find_script(&name, &argv[index + 1..]).map(StartedFile::Script));
            break;
        }
        let is_wrapper = find_wrapper(&name, argv, index + 1).is_some();
        let runs_here = find_handover(&argv[index..=index]).is_none();
        let mut following = index + 1..argv.len();
        next = following
            .find(|later| roles[*later] == ArgRole::Program)
            .filter(|_| is_wrapper && runs_here);
    }
    files
}

/// Returns the file that an interpreter reads its code from.
fn find_script<'a>(interpreter: &str, arguments: &[&'a str]) -> Option<&'a str> {
    let interpreter = find_interpreter(interpreter)?;
    let has_other_code =
        |element: &&str| interpreter.excludes_script(element) || interpreter.names_module(element);
    let options = arguments
        .iter()
        .take_while(|element| element.starts_with('-') && **element != "--");
    if !interpreter.runs_file() || options.into_iter().any(has_other_code) {
        return None;
    }
    let script = interpreter.first_operand(arguments)?;
    (script != "-" && is_literal(script)).then_some(script)
}

fn is_literal(element: &str) -> bool {
    !element.is_empty() && !element.contains('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_scripts_are_found_behind_wrappers() {
        use StartedFile::{Program, Script};
        for (text, expected) in [
            ("cat -- {path}", vec![Program("cat")]),
            ("./tool {x}", vec![Program("./tool")]),
            (
                "python3 -u tool.py {x}",
                vec![Program("python3"), Script("tool.py")],
            ),
            ("python3 -m http.server", vec![Program("python3")]),
            ("python3 -c pass", vec![Program("python3")]),
            ("sh -c ls", vec![Program("sh")]),
            ("sh {script}", vec![Program("sh")]),
            (
                "nice -n 5 node server.js",
                vec![Program("nice"), Program("node"), Script("server.js")],
            ),
            ("timeout 5 rg {x}", vec![Program("timeout"), Program("rg")]),
            ("docker run box python3 x.py", vec![Program("docker")]),
            ("echo bash", vec![Program("echo")]),
        ] {
            let argv: Vec<&str> = text.split(' ').collect();
            assert_eq!(find_started_files(&argv), expected, "{text}");
        }
    }
}
