//! Programs that failed, were ended, or were never started.

use std::time::Duration;

use crate::answer::texts::dispatch::joined;
use crate::answer::texts::error_text::Account;
use crate::answer::texts::hints;
use crate::answer::texts::limits;
use crate::answer::texts::signals;
use crate::text::format_duration;
use crate::types::{Effect, Limit, SpawnFault, Tool};

pub(crate) fn exited(code: i32, output: &str, stderr: &str) -> Account {
    let hint = match (code, hints::by_cause(output, stderr)) {
        (_, Some(hint)) => hint,
        (126, _) => {
            "a program that this needs can't be executed. Use another tool, or tell the user."
        }
        (127, _) => {
            "a program that this needs is not installed. Use another tool, or tell the user."
        }
        _ if output.is_empty() && stderr.is_empty() => {
            "it wrote nothing about the cause. Check the input, or try another way."
        }
        _ => "read what it wrote, and change the input before you call it again.",
    };
    Account::new(format!("Exit code {code}."), hint).with_details(written(output, stderr))
}

pub(crate) fn signalled(signal: i32, output: &str, stderr: &str) -> Account {
    let hint = match signal {
        libc::SIGKILL => "it may have needed too much memory. Ask for less at once.",
        libc::SIGXCPU => "it used up its processor time. Ask for less at once.",
        libc::SIGXFSZ => "it wrote a file that is too large. Ask for less at once.",
        libc::SIGTERM | libc::SIGINT | libc::SIGHUP => {
            "something from outside ended it. It may work if you call it again."
        }
        _ => "the program crashed. Try another input or another tool.",
    };
    let error = format!("Ended by {}.", signals::name(signal));
    Account::new(error, hint).with_details(written(output, stderr))
}

/// It used more than its tool allows.
pub(crate) fn over(limit: Limit, tool: Option<&Tool>, output: &str, stderr: &str) -> Account {
    let error = format!(
        "Ended because it exceeded a limit: {}.",
        limits::told(limit, tool)
    );
    Account::new(error, limits::hint(limit)).with_details(written(output, stderr))
}

/// It ran, but what it wrote is not what it declares.
pub(crate) fn bad_output(name: &str, problem: &str, output: &str, stderr: &str) -> Account {
    let hint = hints::by_cause(output, stderr).unwrap_or(
        "this is the tool's fault. Try another input or another tool, and tell the user of it.",
    );
    let error = format!("{name} ran, but its output is not what it declares: {problem}.");
    Account::new(error, hint).with_details(written(output, stderr))
}

pub(crate) fn timed_out(
    name: &str,
    tool: Option<&Tool>,
    limit: Duration,
    output: &str,
    stderr: &str,
) -> Account {
    let hint = if tool.is_some_and(|tool| tool.effect == Effect::Write) {
        "it may have done a part of its work: look before you call it again, and ask for less at once."
    } else {
        "ask for less at once (a narrower search, a smaller range), or use another tool."
    };
    let error = format!(
        "{name} timed out after {} and was ended.",
        format_duration(limit)
    );
    Account::new(error, hint).with_details(until_then(output, stderr))
}

/// What a program had written when it was ended; empty where it had not.
pub(crate) fn until_then(output: &str, stderr: &str) -> String {
    match written(output, stderr) {
        nothing if nothing.is_empty() => nothing,
        something => format!("Until then it wrote:\n{something}"),
    }
}

pub(crate) fn not_started(fault: &SpawnFault) -> Account {
    let program = &fault.program;
    let lasting = "another input won't change that. Use another tool, or tell the user.";
    if let Some(folder) = &fault.folder {
        return Account::new(no_folder(folder, fault.errno), lasting);
    }
    let (error, hint) = match fault.errno {
        libc::ENOENT => (format!("The program `{program}` was not found."), lasting),
        libc::EACCES | libc::EPERM => (
            format!("The program `{program}` may not be executed (permission denied)."),
            lasting,
        ),
        libc::ENOEXEC => (
            format!(
                "`{program}` is no program of this machine, nor a script that names its interpreter."
            ),
            lasting,
        ),
        libc::EISDIR => (format!("`{program}` is a folder, no program."), lasting),
        libc::ENOTDIR => (
            format!("A part of the path `{program}` is a file, not a folder."),
            lasting,
        ),
        libc::ELOOP => (
            format!("`{program}` is a link that leads to itself."),
            lasting,
        ),
        libc::E2BIG => (
            format!("The arguments for `{program}` are too long."),
            "nothing ran. Call it with a shorter input, or split it.",
        ),
        libc::ETXTBSY => (
            format!("The program `{program}` is being written at the moment."),
            "nothing ran. Call it again in a moment.",
        ),
        libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE => (
            format!("The system has no room to start `{program}` at the moment."),
            "nothing ran. Call it again in a moment, with fewer calls at once.",
        ),
        other => (
            format!(
                "The program `{program}` could not be started: {}.",
                std::io::Error::from_raw_os_error(other)
            ),
            lasting,
        ),
    };
    Account::new(error, hint)
}

/// The folder that a program was to run in can't be entered; an empty one is the root.
fn no_folder(folder: &str, errno: i32) -> String {
    let named = match folder {
        "" => "The root, where this tool runs,".to_owned(),
        folder => format!("The folder `{folder}`, where this tool runs,"),
    };
    match errno {
        libc::ENOENT => format!("{named} does not exist."),
        libc::ENOTDIR => format!("{named} is no folder."),
        libc::EACCES => format!("{named} may not be entered (permission denied)."),
        other => {
            let cause = std::io::Error::from_raw_os_error(other);
            format!("{named} can't be entered: {cause}.")
        }
    }
}

/// What a program wrote: bare where it used one channel, else both with their names.
fn written(output: &str, stderr: &str) -> String {
    if output.is_empty() || stderr.is_empty() {
        return joined([stderr, output]);
    }
    joined(["stderr:", stderr, "stdout:", output])
}
