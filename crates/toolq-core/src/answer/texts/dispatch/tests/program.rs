//! What becomes of programs.

use super::*;

#[test]
fn exit_codes() {
    insta::assert_snapshot!(texts(&[
        failed(Ending::Exit(1), "", "cat: notes.txt: No such file or directory\n"),
        failed(Ending::Exit(1), "", "cat: /etc/shadow: Permission denied\n"),
        failed(Ending::Exit(127), "", "sh: 1: foo: command not found\n"),
        failed(Ending::Exit(127), "", ""),
        failed(Ending::Exit(2), "3 tests passed, 1 failed\n", "warning: unused\n"),
        failed(Ending::Exit(3), "", ""),
        failed(Ending::Exit(7), "", "curl: (7) Failed to connect to localhost port 1: Connection refused"),
    ]), @"
        Exit code 1.
        cat: notes.txt: No such file or directory
        Hint: there is nothing at this path. Check its spelling, or list the folder first.
        ---
        Exit code 1.
        cat: /etc/shadow: Permission denied
        Hint: this is not permitted, and calling again won't change that. Use another path or another way, or ask the user.
        ---
        Exit code 127.
        sh: 1: foo: command not found
        Hint: a program that this needs is not installed. Use another tool, or tell the user.
        ---
        Exit code 127.
        Hint: a program that this needs is not installed. Use another tool, or tell the user.
        ---
        Exit code 2.
        stderr:
        warning: unused
        stdout:
        3 tests passed, 1 failed
        Hint: read what it wrote, and change the input before you call it again.
        ---
        Exit code 3.
        Hint: it wrote nothing about the cause. Check the input, or try another way.
        ---
        Exit code 7.
        curl: (7) Failed to connect to localhost port 1: Connection refused
        Hint: nobody listens at this address. The service may not be running: check the address, or try again later.
        ");
}

/// FAULTS 47.
#[test]
fn signals() {
    insta::assert_snapshot!(texts(&[
        failed(Ending::Signal(libc::SIGSEGV), "half", ""),
        failed(Ending::Signal(libc::SIGKILL), "", ""),
        failed(Ending::Signal(libc::SIGTERM), "", ""),
        failed(Ending::Signal(libc::SIGXFSZ), "", ""),
        failed(Ending::Signal(64), "", ""),
    ]), @"
        Ended by SIGSEGV.
        half
        Hint: the program crashed. Try another input or another tool.
        ---
        Ended by SIGKILL.
        Hint: it may have needed too much memory. Ask for less at once.
        ---
        Ended by SIGTERM.
        Hint: something from outside ended it. It may work if you call it again.
        ---
        Ended by SIGXFSZ.
        Hint: it wrote a file that is too large. Ask for less at once.
        ---
        Ended by signal 64.
        Hint: the program crashed. Try another input or another tool.
        ");
}

#[test]
fn timeouts() {
    let outcome = |output: &str, stderr: &str| Outcome::TimedOut {
        idle: false,
        limit: Duration::from_secs(30),
        output: output.to_owned(),
        stderr: stderr.to_owned(),
        captured: Captured::default(),
    };
    let write = tool_with_schema("save", json!(true));
    insta::assert_snapshot!(
        texts(&[outcome("", ""), outcome("line 1\n", ""), outcome("line 1\n", "waiting for the lock\n")])
            + "\n---\n"
            + &text_of(Some(&write), &outcome("", "")),
        @"
        search timed out after 30s and was ended.
        Hint: ask for less at once (a narrower search, a smaller range), or use another tool.
        ---
        search timed out after 30s and was ended.
        Until then it wrote:
        line 1
        Hint: ask for less at once (a narrower search, a smaller range), or use another tool.
        ---
        search timed out after 30s and was ended.
        Until then it wrote:
        stderr:
        waiting for the lock
        stdout:
        line 1
        Hint: ask for less at once (a narrower search, a smaller range), or use another tool.
        ---
        save timed out after 30s and was ended.
        Hint: it may have done a part of its work: look before you call it again, and ask for less at once.
        "
    );
}

/// FAULTS 33.
#[test]
fn programs_that_do_not_start() {
    let errnos = [
        libc::ENOENT,
        libc::EACCES,
        libc::ENOEXEC,
        libc::EISDIR,
        libc::ENOTDIR,
        libc::ELOOP,
        libc::E2BIG,
        libc::ETXTBSY,
        libc::EAGAIN,
        libc::EIO,
    ];
    let outcomes = errnos.map(|errno| {
        Outcome::NotStarted(SpawnFault {
            program: "ripgrep".to_owned(),
            folder: None,
            errno,
        })
    });
    insta::assert_snapshot!(texts(&outcomes), @"
        The program `ripgrep` was not found.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        The program `ripgrep` may not be executed (permission denied).
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is no program of this machine, nor a script that names its interpreter.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is a folder, no program.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        A part of the path `ripgrep` is a file, not a folder.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        `ripgrep` is a link that leads to itself.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        The arguments for `ripgrep` are too long.
        Hint: nothing ran. Call it with a shorter input, or split it.
        ---
        The program `ripgrep` is being written at the moment.
        Hint: nothing ran. Call it again in a moment.
        ---
        The system has no room to start `ripgrep` at the moment.
        Hint: nothing ran. Call it again in a moment, with fewer calls at once.
        ---
        The program `ripgrep` could not be started: Input/output error (os error 5).
        Hint: another input won't change that. Use another tool, or tell the user.
        ");
}
