//! What the author's own wrapper does with the program that follows it.

use crate::tools_file::argv::classify::{ArgRole, classify_args};
use crate::tools_file::argv::wrappers::base_name;
use crate::types::{CommandWrapper, WrapperQuoting};

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

/// What a wrapper does with the arguments after its own, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrapperKind<'a> {
    /// The program of this name makes shell text of them.
    TakesShellText(&'a str),
    /// It runs the first one as a program.
    RunsProgram,
    /// Nothing is known.
    Unknown,
}

/// Returns what a wrapper does with the arguments after its own.
pub(crate) fn classify_wrapper<'a>(argv: &[&'a str]) -> WrapperKind<'a> {
    let ends_with_option = matches!(argv.last(), Some(&"-c" | &"--command"));
    let is_shell_text_program = |element: &&&str| {
        let name = base_name(element);
        SHELL_TEXT_PROGRAMS.contains(&name.as_str())
            || ends_with_option && OPTIONAL_SHELL_TEXT_PROGRAMS.contains(&name.as_str())
    };
    if let Some(element) = argv.iter().find(is_shell_text_program) {
        return WrapperKind::TakesShellText(element);
    }
    let wrapped = [argv, &["PROGRAM"]].concat();
    match classify_args(&wrapped).last() {
        Some(ArgRole::Program) => WrapperKind::RunsProgram,
        Some(ArgRole::Code | ArgRole::Script) => {
            WrapperKind::TakesShellText(argv.first().copied().unwrap_or_default())
        }
        _ => WrapperKind::Unknown,
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
    let Some(wrapper) = wrapper.filter(|wrapper| wrapper.quoting == WrapperQuoting::None) else {
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
            ("nice -n 5", WrapperKind::RunsProgram),
            ("docker exec -i box", WrapperKind::RunsProgram),
            ("sudo -u other nice", WrapperKind::RunsProgram),
            ("bwrap --ro-bind / / --", WrapperKind::Unknown),
            ("./my-wrapper", WrapperKind::Unknown),
            ("sh -c", WrapperKind::TakesShellText("sh")),
            (
                "docker exec box sh -c",
                WrapperKind::TakesShellText("docker"),
            ),
            ("ssh -p 22 host", WrapperKind::TakesShellText("ssh")),
            (
                "bwrap -- /usr/bin/ssh host",
                WrapperKind::TakesShellText("/usr/bin/ssh"),
            ),
            ("su other -c", WrapperKind::TakesShellText("su")),
            ("script -qec", WrapperKind::TakesShellText("script")),
            ("watch", WrapperKind::TakesShellText("watch")),
            ("tmux new-session", WrapperKind::TakesShellText("tmux")),
            ("runuser other -c", WrapperKind::TakesShellText("runuser")),
            ("flock file -c", WrapperKind::TakesShellText("flock")),
        ] {
            let argv: Vec<&str> = text.split(' ').collect();
            assert_eq!(classify_wrapper(&argv), expected, "{text}");
        }
        assert_eq!(
            find_handover(&["sudo", "docker", "exec"]),
            Some("docker".to_owned())
        );
        assert_eq!(find_handover(&["nice"]), None);
    }
}
