//! Finds the files that a command runs, as far as its arguments show them.

use crate::tools_file::argv::programs::{base_name, runs_elsewhere};
use crate::tools_file::argv::roles::{ArgRole, ArgvReading};

/// A file that a command runs. Its name contains no value from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedFile<'a> {
    /// A program: a path, or a name that is looked up in `PATH`.
    Program(&'a str),
    /// A file that an interpreter reads.
    Script(&'a str),
}

/// Returns the program at the head of `argv` and, if that is known to start another one on this machine, that one, too. An
/// interpreter is followed by its script.
pub fn find_started_files<'a>(argv: &[&'a str]) -> Vec<StartedFile<'a>> {
    let reading = ArgvReading::new(argv);
    let mut files = Vec::new();
    let mut next = (!argv.is_empty()).then_some(0);
    while let Some(position) = next.take().filter(|position| is_literal(argv[*position])) {
        files.push(StartedFile::Program(argv[position]));
        let programs = || {
            reading
                .programs
                .iter()
                .filter(move |program| program.position == position)
        };
        let mut roles = programs().flat_map(|program| &program.roles);
        let script = roles.find(|(_, role)| *role == ArgRole::Script);
        let script = script.map(|(position, _)| argv[*position]);
        files.extend(
            script
                .filter(|script| is_literal(script))
                .map(StartedFile::Script),
        );
        if !runs_elsewhere(&base_name(argv[position])) {
            let started = programs().find_map(|program| program.started.first());
            next = started.map(|(position, _)| *position);
        }
    }
    files
}

fn is_literal(element: &str) -> bool {
    !matches!(element, "" | "-") && !element.contains('{')
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
