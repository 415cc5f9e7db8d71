//! Names of programs, and the wrappers that run another program from their arguments.

/// Programs that run another program from their arguments, with the number of operands before it.
const WRAPPERS: [(&str, usize); 20] = [
    ("busybox", 0),
    ("chroot", 1),
    ("doas", 0),
    ("env", 0),
    ("flock", 1),
    ("gosu", 1),
    ("ionice", 0),
    ("nice", 0),
    ("nohup", 0),
    ("npx", 0),
    ("setarch", 1),
    ("setsid", 0),
    ("stdbuf", 0),
    ("strace", 0),
    ("sudo", 0),
    ("taskset", 1),
    ("time", 0),
    ("timeout", 1),
    ("unshare", 0),
    ("xargs", 0),
];

/// Strips the directory and version from a program and lowercases it: `python3.12` → `python`, `/usr/bin/env` → `env`.
pub(crate) fn base_name(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    name.to_ascii_lowercase()
}

/// Returns the number of operands before the program that the wrapper `name` runs. Returns `None` if it isn't a
/// wrapper.
pub(crate) fn operands_before_program(name: &str) -> Option<usize> {
    let wrapper = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name);
    wrapper.map(|(_, operands)| *operands)
}
