//! A program's own words → what to do about their cause.

/// Bytes of an output in which a cause is looked for: its end.
const LOOKED_AT: usize = 4_096;

/// What programs say when a call of the system failed (strerror), or a shell; and what a model can do then.
const CAUSES: [(&str, &str); 16] = [
    (
        "no such file or directory",
        "there is nothing at this path. Check its spelling, or list the folder first.",
    ),
    (
        "cannot find the file",
        "there is nothing at this path. Check its spelling, or list the folder first.",
    ),
    (
        "file exists",
        "something stands at this path already. Choose another path, or remove or change what is there.",
    ),
    (
        "is a directory",
        "this path is a folder. Name a file in it, or list it.",
    ),
    (
        "not a directory",
        "a part of this path is a file, not a folder. List the folder above it.",
    ),
    (
        "permission denied",
        "this is not permitted, and calling again won't change that. Use another path or another way, or ask the user.",
    ),
    (
        "operation not permitted",
        "this is not permitted, and calling again won't change that. Use another path or another way, or ask the user.",
    ),
    (
        "read-only file system",
        "nothing can be written there. Use another folder.",
    ),
    (
        "no space left on device",
        "the disk is full. Tell the user before you write more.",
    ),
    (
        "command not found",
        "a program that this needs is not installed. Use another tool, or tell the user.",
    ),
    (
        "argument list too long",
        "the input is too long for one call. Split it.",
    ),
    (
        "connection refused",
        "nobody listens at this address. The service may not be running: check the address, or try again later.",
    ),
    (
        "could not resolve host",
        "this host name is unknown. Check its spelling.",
    ),
    (
        "name or service not known",
        "this host name is unknown. Check its spelling.",
    ),
    (
        "timed out",
        "it took too long. Ask for less at once, or try again later.",
    ),
    (
        "too many requests",
        "it is called too often. Wait before you call it again.",
    ),
];

/// The hint of the first cause that the end of `stderr`, else of `output`, names.
pub(crate) fn by_cause(output: &str, stderr: &str) -> Option<&'static str> {
    [stderr, output].into_iter().find_map(|text| {
        let end = end_of(text).to_lowercase();
        let (_, hint) = CAUSES.iter().find(|(cause, _)| end.contains(cause))?;
        Some(*hint)
    })
}

fn end_of(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT));
    &text[start..]
}
