//! Explains programs that failed, were killed, or were never started.

use crate::answer::texts::{ErrorText, MAYBE_DONE_HINT, http, join_streams, limits};
use crate::text::escape;
use crate::types::{Backing, LimitKind, SpawnError, Tool};

pub(crate) fn explain_exit(
    code: i32,
    tool: Option<&Tool>,
    output: &str,
    stderr: &str,
) -> ErrorText {
    let hint = match (code, find_cause_hint(tool, output, stderr)) {
        (_, Some(hint)) => hint,
        (126, _) => {
            "a program that it needs can't be executed. Use another tool, or tell the user."
        }
        (127, _) => "a program that it needs isn't installed. Use another tool, or tell the user.",
        (137, _) => {
            "a program that it ran was killed (SIGKILL), perhaps because it used too much memory. Ask for less at a time."
        }
        (129 | 130 | 143, _) => {
            "something terminated a program that it ran. It may work if you call it again."
        }
        (132 | 134..=136 | 139, _) => {
            "a program that it ran crashed. Try another input or another tool."
        }
        _ if output.is_empty() && stderr.is_empty() => {
            "it didn't say why. Check the input, or try another approach."
        }
        _ => "read its output, and change the input before calling it again.",
    };
    ErrorText::new(format!("Exit code {code}."), hint).with_details(join_streams(output, stderr))
}

pub(crate) fn explain_signal(signal: i32, output: &str, stderr: &str) -> ErrorText {
    let hint = match signal {
        libc::SIGKILL => "it may have used too much memory. Ask for less at a time.",
        libc::SIGXCPU => "it used up its CPU time. Ask for less at a time.",
        libc::SIGXFSZ => "it wrote a file that is too large. Ask for less at a time.",
        libc::SIGTERM | libc::SIGINT | libc::SIGHUP => {
            "something outside of toolq terminated it. It may work if you call it again."
        }
        _ => "the program crashed. Try another input or another tool.",
    };
    let error = format!("Killed by {}.", signal_name(signal));
    ErrorText::new(error, hint).with_details(join_streams(output, stderr))
}

/// Explains a program that was killed because it exceeded one of its tool's limits.
pub(crate) fn explain_exceeded_limit(
    limit: LimitKind,
    tool: Option<&Tool>,
    output: &str,
    stderr: &str,
) -> ErrorText {
    let error = format!(
        "Killed because it exceeded a limit: {}.",
        limits::format_limit(limit, tool)
    );
    ErrorText::new(error, limits::limit_hint(limit)).with_details(join_streams(output, stderr))
}

/// Explains a tool whose output isn't what it declares.
pub(crate) fn explain_bad_output(
    name: &str,
    problem: &str,
    tool: Option<&Tool>,
    output: &str,
    stderr: &str,
) -> ErrorText {
    let hint = find_cause_hint(tool, output, stderr).unwrap_or(
        "the tool itself is at fault. Try another input or another tool, and tell the user about it.",
    );
    let error = format!("{name} ran, but its output doesn't match its declaration: {problem}.");
    ErrorText::new(error, hint).with_details(join_streams(output, stderr))
}

/// Says that the first line of a script names an interpreter that isn't there.
fn interpreter_error(program: &str, interpreter: &str) -> String {
    let shown = escape(interpreter);
    let cause = if interpreter.ends_with('\r') {
        ": its lines end as on Windows (CRLF)"
    } else {
        ""
    };
    format!("The interpreter `{shown}` of the script `{program}` was not found{cause}.")
}

pub(crate) fn explain_spawn_error(fault: &SpawnError) -> ErrorText {
    let program = &fault.program;
    let permanent_hint = "a different input won't change that. Use another tool, or tell the user.";
    if let Some(directory) = &fault.directory {
        return ErrorText::new(directory_error(directory, fault.errno), permanent_hint);
    }
    if let Some(cause) = &fault.confinement {
        let error = format!("The program `{program}` can't be started in its sandbox: {cause}.");
        return ErrorText::new(error, permanent_hint);
    }
    if let Some(interpreter) = &fault.interpreter {
        return ErrorText::new(interpreter_error(program, interpreter), permanent_hint);
    }
    let (error, hint) = match fault.errno {
        libc::ENOENT => (
            format!("The program `{program}` was not found."),
            permanent_hint,
        ),
        libc::EACCES | libc::EPERM => (
            format!("The program `{program}` can't be executed (permission denied)."),
            permanent_hint,
        ),
        libc::ENOEXEC => (
            format!(
                "`{program}` isn't an executable for this machine, nor a script with a `#!` line."
            ),
            permanent_hint,
        ),
        libc::EISDIR => (
            format!("`{program}` is a directory, not a program."),
            permanent_hint,
        ),
        libc::ENOTDIR => (
            format!("Part of the path `{program}` is a file, not a directory."),
            permanent_hint,
        ),
        libc::ELOOP => (
            format!("`{program}` is a symlink that points to itself."),
            permanent_hint,
        ),
        libc::E2BIG => (
            format!("The arguments for `{program}` are too long."),
            "nothing ran. Call it with a shorter input, or split it.",
        ),
        libc::ETXTBSY => (
            format!("The program `{program}` is being written to right now."),
            "nothing ran. Call it again in a moment.",
        ),
        libc::EMFILE => (
            format!(
                "The program `{program}` could not be started: toolq has as many files open as its limit (`ulimit -n`) allows."
            ),
            "nothing ran. Call it again with fewer calls at once. If that fails, too, tell the user to raise the limit with `ulimit -n`.",
        ),
        libc::EAGAIN | libc::ENOMEM | libc::ENFILE => (
            format!("The system doesn't have the resources to start `{program}` right now."),
            "nothing ran. Call it again in a moment, with fewer calls at once.",
        ),
        other => (
            format!(
                "The program `{program}` could not be started: {}.",
                std::io::Error::from_raw_os_error(other)
            ),
            permanent_hint,
        ),
    };
    ErrorText::new(error, hint)
}

/// Explains why a program's working directory can't be entered. An empty `directory` is the root.
fn directory_error(directory: &str, errno: i32) -> String {
    let subject = match directory {
        "" => "This tool's working directory (the root)".to_owned(),
        directory => format!("This tool's working directory `{directory}`"),
    };
    match errno {
        libc::ENOENT => format!("{subject} doesn't exist."),
        libc::ENOTDIR => format!("{subject} isn't a directory."),
        libc::EACCES => format!("{subject} can't be entered (permission denied)."),
        other => {
            let cause = std::io::Error::from_raw_os_error(other);
            format!("{subject} can't be entered: {cause}.")
        }
    }
}

// The names of signals.

/// Returns `SIGSEGV` for 11, and `signal N` for a signal without a name here.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

// Finds the cause of a failure in a program's output, and a hint for it.

/// Number of bytes at the end of an output that are searched for a cause.
const SEARCHED_BYTES: usize = 4_096;

/// What programs (through strerror) and shells print when something fails, and what a model can do about it.
const CAUSE_HINTS: [(&str, &str); 16] = [
    (
        "no such file or directory",
        "nothing exists at this path. Check the spelling, or list the directory first.",
    ),
    (
        "cannot find the file",
        "nothing exists at this path. Check the spelling, or list the directory first.",
    ),
    (
        "file exists",
        "something already exists at this path. Choose another path, or remove or change what is there.",
    ),
    (
        "is a directory",
        "this path is a directory. Name a file in it, or list it.",
    ),
    (
        "not a directory",
        "part of this path is a file, not a directory. List the parent directory.",
    ),
    (
        "permission denied",
        "this isn't permitted, and calling again won't change that. Use another path or another approach, or ask the user.",
    ),
    (
        "operation not permitted",
        "this isn't permitted, and calling again won't change that. Use another path or another approach, or ask the user.",
    ),
    (
        "read-only file system",
        "nothing can be written there. Use another directory.",
    ),
    (
        "no space left on device",
        "the disk is full. Tell the user before writing more.",
    ),
    (
        "command not found",
        "a program that it needs isn't installed. Use another tool, or tell the user.",
    ),
    (
        "argument list too long",
        "the input is too long for one call. Split it.",
    ),
    (
        "connection refused",
        "nothing is listening at this address. The service may not be running: check the address, or try again later.",
    ),
    (
        "could not resolve host",
        "this host name is unknown. Check the spelling.",
    ),
    (
        "name or service not known",
        "this host name is unknown. Check the spelling.",
    ),
    (
        "timed out",
        "it took too long. Ask for less at a time, or try again later.",
    ),
    (
        "too many requests",
        "it is being called too often. Wait before calling it again.",
    ),
];

/// What the same causes may mean in a sandbox.
const SANDBOX_HINTS: [(&str, &str); 5] = [
    ("permission denied", SANDBOX_REFUSAL),
    ("operation not permitted", SANDBOX_REFUSAL),
    ("could not resolve host", SANDBOX_UNREACHABLE),
    ("name or service not known", SANDBOX_UNREACHABLE),
    ("failure in name resolution", SANDBOX_UNREACHABLE),
];

/// What they mean for a call that changes something.
const WRITE_HINTS: [(&str, &str); 1] = [("timed out", MAYBE_DONE_HINT)];

const SANDBOX_REFUSAL: &str = "the tool's sandbox or the system refused this, and calling again won't change that. `write` and `read` of its `sandbox` in tools.yaml say what it may change and read. Use another path, or ask the user.";

const SANDBOX_UNREACHABLE: &str = "this host name is unknown, or the tool's sandbox keeps it out of reach: `network` of its `sandbox` in tools.yaml says what it may reach. Check the spelling, or use another tool.";

/// Returns the hint for the last known cause in the end of `stderr`, or else of `output`: the program went on after the
/// causes before it.
fn find_cause_hint(tool: Option<&Tool>, output: &str, stderr: &str) -> Option<&'static str> {
    let is_confined = matches!(
        tool.and_then(|tool| tool.backing.as_ref()),
        Some(Backing::Command(command)) if command.sandbox.is_some()
    );
    let sandbox_hints = SANDBOX_HINTS.iter().filter(|_| is_confined);
    let write_hints = WRITE_HINTS.iter().filter(|_| http::is_write(tool));
    let hints: Vec<_> = CAUSE_HINTS
        .iter()
        .chain(sandbox_hints)
        .chain(write_hints)
        .collect();
    [stderr, output].into_iter().find_map(|text| {
        let end = searched_tail(text).to_lowercase();
        // Of two hints for the same place, the last one counts: that of the sandbox or of writes.
        hints
            .iter()
            .filter_map(|(cause, hint)| Some((end.rfind(cause)?, *hint)))
            .max_by_key(|(place, _)| *place)
            .map(|(_, hint)| hint)
    })
}

fn searched_tail(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(SEARCHED_BYTES));
    &text[start..]
}
