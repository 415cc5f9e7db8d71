//! Finds the arguments of a command that name a program or contain code. Values from the input must not become part of
//! them. What programs do with their arguments is in a table, `programs.txt`; a program that isn't there is assumed to treat
//! them as data.

pub(crate) mod programs;
pub(crate) mod roles;

use crate::tools_file::argv::programs::{StartPlace, base_name, is_one_of, runs_elsewhere};
use crate::tools_file::argv::roles::{ArgRole, ArgvReading, ProgramReading};

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
        let script = programs()
            .flat_map(|program| &program.roles)
            .find(|(_, role)| *role == ArgRole::Script)
            .map(|(position, _)| argv[*position]);
        files.extend(
            script
                .filter(|script| is_literal(script))
                .map(StartedFile::Script),
        );
        if !runs_elsewhere(&base_name(argv[position])) {
            let in_path = programs().filter(|program| program.rule.starts_from == StartPlace::Path);
            let started = in_path.flat_map(|program| &program.started).next();
            next = started.map(|(position, _)| *position);
        }
    }
    files
}

fn is_literal(element: &str) -> bool {
    !matches!(element, "" | "-") && !element.contains('{')
}

/// Returns the program that runs what it reads from stdin, if there is one.
pub(crate) fn find_stdin_code_reader<'a>(argv: &[&'a str]) -> Option<&'a str> {
    let shows_information = |element: &&str| matches!(*element, "--version" | "--help" | "-V");
    if argv.iter().any(shows_information) {
        return None;
    }
    let reading = ArgvReading::new(argv);
    let program = reading
        .programs
        .iter()
        .find(|program| runs_stdin(program, &reading))?;
    Some(argv[program.position])
}

fn runs_stdin(program: &ProgramReading<'_>, reading: &ArgvReading<'_>) -> bool {
    let rule = program.rule;
    let mut options = program
        .options
        .iter()
        .map(|position| reading.argv[*position]);
    if options.any(|option| is_one_of(option, &rule.stdin_unless)) {
        return false;
    }
    if program.files.iter().any(|file| is_stdin(file)) || inserts_stdin_into_code(program, reading)
    {
        return true;
    }
    if let Some(text) = find_shell_text(program, reading) {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        return find_stdin_code_reader(&words).is_some();
    }
    let is_default = rule.runs_stdin && !program.has_rest;
    (is_default || program.is_told_to_run_stdin) && !program.is_given_code
}

/// Returns the text that a program has a shell run.
fn find_shell_text(program: &ProgramReading<'_>, reading: &ArgvReading<'_>) -> Option<String> {
    let begin = program
        .rule
        .operand
        .filter(|_| program.rule.makes_shell_text())?
        .first
        .checked_sub(1)
        .and_then(|index| program.operands.get(index))?;
    Some(reading.argv[*begin..].join(" "))
}

/// Whether what is read from stdin becomes a part of code, as with `xargs -I% sh -c 'echo %'`.
fn inserts_stdin_into_code(program: &ProgramReading<'_>, reading: &ArgvReading<'_>) -> bool {
    let Some(mark) = program.stdin_mark.filter(|mark| !mark.is_empty()) else {
        return false;
    };
    reading
        .argv
        .iter()
        .zip(&reading.roles)
        .skip(program.position)
        .any(|(element, role)| *role == ArgRole::Code && element.contains(mark))
}

fn is_stdin(file: &str) -> bool {
    matches!(file, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a `stdin`, they would run the input of the model.
    #[test]
    fn programs_that_run_their_stdin_are_found() {
        for (argv, expected) in [
            ("sh", true),
            ("bash -s -- {x}", true),
            ("bash -eu", true),
            ("sh -c code -- {x}", false),
            ("sh script.sh", false),
            ("bash -o pipefail", true),
            ("bash --version", false),
            ("python3", true),
            ("python3 - {x}", true),
            ("python3 -u -", true),
            ("python3 /dev/stdin", true),
            ("python3 -m json.tool", false),
            ("python3 tool.py {x}", false),
            ("python3 -c code", false),
            ("node", true),
            ("node tool.js", false),
            ("perl -ne code", false),
            ("perl", true),
            ("awk code", false),
            ("awk -f - {x}", true),
            ("sed -n p", false),
            ("env -i bash", true),
            ("timeout 5 sh -s", true),
            ("make -f - all", true),
            ("make -f- all", true),
            ("make all", false),
            ("xargs -I% sh -c echo_%", true),
            ("xargs -I % sh -c echo_%", true),
            ("xargs sh -c echo", false),
            ("xargs cat", false),
            ("sqlite3 app.db", true),
            ("sqlite3 -safe app.db", false),
            ("sqlite3 app.db SELECT", false),
            ("psql -d app", true),
            ("psql -c SELECT", false),
            ("ssh host", true),
            ("ssh -p 22 host bash", true),
            ("ssh host sudo bash -s", true),
            ("ssh -l me host cat", false),
            ("tclsh", true),
            ("tclsh tool.tcl", false),
            ("ex -s f", true),
            ("vim -es f", true),
            ("vim f", false),
            ("vim -es -c wq f", false),
            ("script -q /dev/null", true),
            ("script -qc ls /dev/null", false),
            ("setarch x86_64", true),
            ("setarch x86_64 ls", false),
            ("i386", true),
            ("i386 ls", false),
            ("x86_64", true),
            ("python3 -i tool.py", true),
            ("java -version", false),
            ("parallel", true),
            ("parallel sh -c", true),
            ("parallel echo", false),
            ("chroot /srv", true),
            ("chroot /srv ls", false),
            ("sudo -s", true),
            ("sudo ls", false),
            ("cat", false),
            ("jq .", false),
            ("bin/tool", false),
        ] {
            let argv: Vec<&str> = argv.split(' ').collect();
            assert_eq!(
                find_stdin_code_reader(&argv).is_some(),
                expected,
                "{argv:?}"
            );
        }
    }

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
            ("npx -y @scope/pkg@1.2.3 .", vec![Program("npx")]),
            ("uvx mcp-x", vec![Program("uvx")]),
            ("pipx run mcp-x", vec![Program("pipx")]),
            (
                "nice uv tool run mcp-x",
                vec![Program("nice"), Program("uv")],
            ),
            ("pnpm dlx pkg", vec![Program("pnpm")]),
        ] {
            let argv: Vec<&str> = text.split(' ').collect();
            assert_eq!(find_started_files(&argv), expected, "{text}");
        }
    }
}
