//! Finds the cause of a failure in a program's output, and a hint for it.

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

/// Returns the hint for the first known cause at the end of `stderr`, or else of `output`.
pub(crate) fn find_cause_hint(output: &str, stderr: &str) -> Option<&'static str> {
    [stderr, output].into_iter().find_map(|text| {
        let end = searched_tail(text).to_lowercase();
        let (_, hint) = CAUSE_HINTS.iter().find(|(cause, _)| end.contains(cause))?;
        Some(*hint)
    })
}

fn searched_tail(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(SEARCHED_BYTES));
    &text[start..]
}
