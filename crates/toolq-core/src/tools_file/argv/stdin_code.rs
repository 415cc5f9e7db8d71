//! Finds programs that would run what they read from stdin.

use crate::tools_file::argv::classify::{ArgRole, classify_args};
use crate::tools_file::argv::interpreters::{StdinUse, find_interpreter};
use crate::tools_file::argv::wrappers::{base_name, find_wrapper};

/// Programs that read commands from stdin unless one of these options or an operand of this number says otherwise.
const COMMAND_READERS: [(&str, &str, usize); 17] = [
    ("sqlite3", "-safe", 2),
    ("psql", "-c --command -f --file -l --list", usize::MAX),
    ("mysql", "-e --execute", usize::MAX),
    ("mariadb", "-e --execute", usize::MAX),
    ("gdb", "-batch --batch", usize::MAX),
    ("gnuplot", "-e", 1),
    ("octave", "--eval", 1),
    ("r", "-e -f --file", 1),
    ("irb", "", 1),
    ("ghci", "-e", usize::MAX),
    ("m4", "", 1),
    ("at", "-f -l -r -d -c", usize::MAX),
    ("batch", "", usize::MAX),
    ("ed", "", usize::MAX),
    ("ex", "-c + -S", usize::MAX),
    ("ftp", "", usize::MAX),
    ("sftp", "-b", usize::MAX),
];

/// Returns the name of the program that runs what it reads from stdin, if there is one.
pub(crate) fn find_stdin_code_reader(argv: &[&str]) -> Option<String> {
    let roles = classify_args(argv);
    let shows_information = argv
        .iter()
        .any(|element| matches!(*element, "--version" | "--help" | "-V"));
    if shows_information {
        return None;
    }
    let programs = roles
        .iter()
        .enumerate()
        .filter(|(_, role)| **role == ArgRole::Program);
    for (index, _) in programs {
        let name = base_name(argv[index]);
        let rest = &argv[index + 1..];
        if runs_stdin(&name, argv, index + 1, &roles) || makes_stdin_a_makefile(&name, rest) {
            return Some(argv[index].to_owned());
        }
    }
    None
}

fn runs_stdin(name: &str, argv: &[&str], after: usize, roles: &[ArgRole]) -> bool {
    let (rest, rest_roles) = (&argv[after..], &roles[after..]);
    // `script` starts a shell, regardless of the file that it writes to.
    if name == "script" {
        return !rest_roles.contains(&ArgRole::Code);
    }
    if let Some(interpreter) = find_interpreter(name) {
        return match interpreter.stdin_use() {
            StdinUse::Data => rest
                .windows(2)
                .any(|pair| matches!(pair[0], "-f" | "--file") && is_stdin(pair[1])),
            StdinUse::Program => {
                let operand = interpreter.first_operand(rest);
                let is_code = rest_roles.contains(&ArgRole::Code);
                interpreter.forces_stdin(rest) || !is_code && operand.is_none_or(is_stdin)
            }
        };
    }
    if let Some((_, options, operands)) =
        COMMAND_READERS.iter().find(|(reader, ..)| *reader == name)
    {
        let has_option = rest.iter().any(|element| {
            options
                .split(' ')
                .any(|option| !option.is_empty() && element.starts_with(option))
        });
        let count = rest
            .iter()
            .filter(|element| !element.starts_with('-'))
            .count();
        return !has_option && count < *operands;
    }
    match name {
        // Each line of stdin is a command, or an argument that is quoted.
        "parallel" => !rest.iter().any(|element| element.starts_with(":::")),
        "xargs" => xargs_runs_stdin(rest, rest_roles),
        "ssh" => ssh_runs_stdin(rest),
        "vi" | "vim" | "nvim" | "view" => {
            let has_command = rest
                .iter()
                .any(|element| element.starts_with('+') || matches!(*element, "-c" | "-S"));
            let is_ex = |element: &&str| matches!(*element, "-e" | "-E" | "-es" | "-Es");
            !has_command && rest.iter().any(is_ex)
        }
        "crontab" => rest.contains(&"-"),
        "sudo" | "doas" => {
            rest.iter().any(|element| matches!(*element, "-s" | "-i")) && has_no_program(rest_roles)
        }
        _ => {
            starts_shell_without_program(name)
                && find_wrapper(name, argv, after).is_some()
                && has_no_program(rest_roles)
        }
    }
}

/// Whether ssh runs what it reads from stdin: the remote command does, or there is no command and a shell starts.
fn ssh_runs_stdin(rest: &[&str]) -> bool {
    const VALUE_OPTIONS: &str = "BbcDEeFIiJLlmOopQRSWw";
    let mut takes_value = false;
    let host = rest.iter().position(|element| {
        let is_value = std::mem::take(&mut takes_value);
        let letter = element
            .strip_prefix('-')
            .filter(|letters| letters.len() == 1);
        takes_value = !is_value && letter.is_some_and(|letter| VALUE_OPTIONS.contains(letter));
        !is_value && !element.starts_with('-')
    });
    let Some(host) = host else {
        return false;
    };
    let command = rest[host + 1..].join(" ");
    let words: Vec<&str> = command.split_whitespace().collect();
    words.is_empty() || find_stdin_code_reader(&words).is_some()
}

/// Whether this wrapper starts a shell if no program is named.
fn starts_shell_without_program(name: &str) -> bool {
    matches!(
        name,
        "chroot"
            | "unshare"
            | "nsenter"
            | "runuser"
            | "fakeroot"
            | "proot"
            | "setarch"
            | "linux"
            | "i386"
            | "x86_64"
            | "uname26"
    )
}

fn has_no_program(roles: &[ArgRole]) -> bool {
    !roles.contains(&ArgRole::Program) && !roles.contains(&ArgRole::Code)
}

/// Whether xargs puts what it reads into code: its replacement text is a part of it.
fn xargs_runs_stdin(rest: &[&str], roles: &[ArgRole]) -> bool {
    let replacement = rest
        .iter()
        .enumerate()
        .find_map(|(index, element)| match *element {
            "-I" | "-J" => rest.get(index + 1).copied(),
            "-i" | "--replace" => Some("{}"),
            other => other
                .strip_prefix("-I")
                .or(other.strip_prefix("--replace="))
                .or(other.strip_prefix("-i")),
        });
    replacement.is_some_and(|replacement| {
        let code = rest
            .iter()
            .zip(roles)
            .filter(|(_, role)| **role == ArgRole::Code);
        !replacement.is_empty()
            && code
                .into_iter()
                .any(|(element, _)| element.contains(replacement))
    })
}

fn makes_stdin_a_makefile(name: &str, rest: &[&str]) -> bool {
    matches!(name, "make" | "gmake")
        && rest
            .iter()
            .enumerate()
            .any(|(index, element)| match *element {
                "-f" | "--file" | "--makefile" => {
                    rest.get(index + 1).is_some_and(|file| is_stdin(file))
                }
                other => ["-f", "--file=", "--makefile="]
                    .iter()
                    .any(|option| other.strip_prefix(option).is_some_and(is_stdin)),
            })
}

fn is_stdin(operand: &str) -> bool {
    matches!(
        operand,
        "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"
    )
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
            ("parallel echo", true),
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
}
