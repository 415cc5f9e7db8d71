//! What the author's own wrapper does with the program that follows it.

use crate::tools_file::argv::classify::{ArgRole, classify_args};
use crate::tools_file::argv::wrappers::base_name;
use crate::types::CommandWrapper;

/// Programs that take shell text, even if another wrapper precedes them.
const SHELL_TEXT_PROGRAMS: [&str; 8] = [
    "ssh", "autossh", "rsh", "plink", "adb", "su", "script", "watch",
];

/// Programs that take shell text after `-c`, and otherwise run a program.
const OPTIONAL_SHELL_TEXT_PROGRAMS: [&str; 3] = ["runuser", "flock", "sg"];

/// Programs that ask a daemon or another host to run something. Its processes aren't theirs.
const HANDOVER_PROGRAMS: [&str; 25] = [
    "docker",
    "docker-compose",
    "podman",
    "podman-compose",
    "nerdctl",
    "kubectl",
    "oc",
    "ssh",
    "autossh",
    "rsh",
    "plink",
    "adb",
    "mosh",
    "vagrant",
    "multipass",
    "machinectl",
    "systemd-run",
    "lxc",
    "incus",
    "distrobox",
    "toolbox",
    "flatpak-spawn",
    "tmux",
    "screen",
    "batch",
];

/// Returns the program of a wrapper that makes shell text of the arguments after its own.
pub(crate) fn find_shell_text_program<'a>(argv: &[&'a str]) -> Option<&'a str> {
    let ends_with_option = matches!(argv.last(), Some(&"-c" | &"--command"));
    let is_shell_text_program = |element: &&&str| {
        let name = base_name(element);
        SHELL_TEXT_PROGRAMS.contains(&name.as_str())
            || ends_with_option && OPTIONAL_SHELL_TEXT_PROGRAMS.contains(&name.as_str())
    };
    if let Some(element) = argv.iter().find(is_shell_text_program) {
        return Some(element);
    }
    let wrapped = [argv, &["PROGRAM"]].concat();
    match classify_args(&wrapped).last() {
        Some(ArgRole::Code | ArgRole::Script) => argv.first().copied(),
        _ => None,
    }
}

/// Returns the program in a wrapper that hands over to a daemon or another host.
pub(crate) fn find_handover(argv: &[&str]) -> Option<String> {
    let mut names = argv.iter().map(|element| base_name(element));
    names.find(|name| HANDOVER_PROGRAMS.contains(&name.as_str()))
}

/// Returns the role of each element of `argv` in this wrapper: the stricter one of what it is by itself, and of what the
/// wrapper makes of it.
pub(crate) fn classify_wrapped_args(
    argv: &[&str],
    wrapper: Option<&CommandWrapper>,
) -> Vec<ArgRole> {
    let own = classify_args(argv);
    let Some(wrapper) = wrapper else {
        return own;
    };
    let mut wrapped: Vec<&str> = wrapper.argv.iter().map(String::as_str).collect();
    let first = wrapped.len();
    wrapped.extend(argv);
    let in_wrapper = classify_args(&wrapped).split_off(first);
    let each = own.into_iter().zip(in_wrapper);
    each.map(|(own, wrapped)| if own == ArgRole::Data { wrapped } else { own })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_known_by_what_they_do_with_arguments() {
        for (text, expected) in [
            ("nice -n 5", None),
            ("docker exec -i box", None),
            ("sudo -u other nice", None),
            ("bwrap --ro-bind / / --", None),
            ("./my-wrapper", None),
            ("sh -c", Some("sh")),
            ("docker exec box sh -c", Some("docker")),
            ("ssh -p 22 host", Some("ssh")),
            ("bwrap -- /usr/bin/ssh host", Some("/usr/bin/ssh")),
            ("su other -c", Some("su")),
            ("script -qec", Some("script")),
            ("watch", Some("watch")),
            ("tmux new-session", Some("tmux")),
            ("runuser other -c", Some("runuser")),
            ("flock file -c", Some("flock")),
        ] {
            let argv: Vec<&str> = text.split(' ').collect();
            assert_eq!(find_shell_text_program(&argv), expected, "{text}");
        }
        assert_eq!(
            find_handover(&["sudo", "docker", "exec"]),
            Some("docker".to_owned())
        );
        assert_eq!(find_handover(&["nice"]), None);
    }
}
