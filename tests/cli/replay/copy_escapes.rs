//! `--on-copy`: what reaches around namespaces stays out of reach, too.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::replay::copy_replay::{
    CopyReplay, TOOLS, directory_outside, replay_on_copy, replay_with_tools, sandbox, shell,
};
use crate::replay::{ok_result, recorded_turn};
use crate::support::eprint_uncaptured;

/// What listens to a socket isn't confined: over an SSH master connection, a recorded `git push` would be a real one.
#[test]
fn sockets_that_the_kernel_lists_by_another_name_can_not_be_reached() {
    let Some(outside) = directory_outside() else {
        return;
    };
    let at = |name: &str| outside.path().join(name);
    let bind = |path: &Path| UnixListener::bind(path).unwrap();
    let mut services = vec![bind(&at("temporary")), bind(&at("with space"))];
    fs::hard_link(at("temporary"), at("renamed")).unwrap();
    fs::remove_file(at("temporary")).unwrap();
    // A name that isn't UTF-8 must not hide the others from toolq.
    services.push(bind(&outside.path().join(OsStr::from_bytes(b"\xe9"))));
    // Names of sockets are short, and relative to the working directory of the process that bound them.
    let relative = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('relative'); s.listen(); print(flush=True); input()";
    let mut python = std::process::Command::new("python3")
        .args(["-c", relative])
        .current_dir(outside.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok();
    if let Some(python) = &mut python {
        let _ = python.stdout.take().unwrap().read(&mut [0]).unwrap();
    }
    let script = format!(
        "cd {}; for name in *; do [ ! -S \"$name\" ] || echo \"$name\"; done; echo looked",
        outside.path().display()
    );
    let replayed = replay_on_copy(sandbox(), &[&shell(&script, "looked")], &[]);
    if let Some(mut python) = python {
        python.kill().unwrap();
        python.wait().unwrap();
    }
    drop(services);
    if let Some(CopyReplay { ran, .. }) = replayed {
        ran.assert_exit(0);
    }
}

/// What `setpriv` and old container engines make inheritable would reach programs in spite of the bounding set.
#[test]
fn inheritable_privileges_of_the_superuser_are_given_up() {
    let sandbox = sandbox()
        .tools(&TOOLS.replace("version: 1", "version: 1\nroot: root"))
        .file(
            "r.jsonl",
            shell(
                "grep -E '^Cap(Inh|Amb)' /proc/self/status | tr '\\t' ' '",
                "CapInh: 0000000000000000\nCapAmb: 0000000000000000",
            ),
        );
    let ran = sandbox.run_shell(
        "setpriv --inh-caps +sys_time --ambient-caps +sys_time true 2> /dev/null || exit 77; exec setpriv --inh-caps +sys_time \
         --ambient-caps +sys_time \"$TOOLQ\" replay --on-copy --json - r.jsonl",
    );
    if ran.code == 77 || ran.stderr.contains("so none runs") {
        eprint_uncaptured(format_args!("skipped: no privileges to pass on\n"));
        return;
    }
    ran.assert_exit(0);
}

/// Tries a Unix socket, a datagram, a socket to the host of a virtual machine, a key, and ways around a filter of system
/// calls, and prints what works.
const REACH_OUT: &str = "import ctypes, mmap, os, socket
def attempt(name, action):
    try: action()
    except OSError: return
    print(name)
attempt('unix', lambda: socket.socket(socket.AF_UNIX))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
attempt('pair', socket.socketpair)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    print(name if libc.syscall(*args) >= 0 else 'no %s: %d' % (name, ctypes.get_errno()))
call('key', KEYCTL, 0, -3, 0)
# socket(AF_VSOCK, SOCK_STREAM, 0) by the number for programs with short pointers.
call('x32', 0x40000000 + SOCKET, 40, 1, 0)
ring = ctypes.create_string_buffer(120)
call('ring', 425, 1, ring)
# getpid() by the number for 32-bit programs: mov eax, 20; int 0x80; ret
if os.uname().machine == 'x86_64' and os.fork() == 0:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex('b814000000cd80c3'))
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    os._exit(0)
try: print('32-bit' if os.wait()[1] == 0 else 'no 32-bit')
except OSError: print('no 32-bit')";
/// What the last tries end with: EPERM for a key, ENOSYS for the foreign number, EPERM for a ring, SIGSYS.
const REFUSED: &str = "no key: 1\nno x32: 38\nno ring: 1\nno 32-bit";

fn reach_out() -> Option<String> {
    let (keyctl, socket) = match std::env::consts::ARCH {
        "x86_64" => ("250", "41"),
        "aarch64" => ("219", "198"),
        _ => return None,
    };
    let has_python = std::process::Command::new("python3").arg("-V").output();
    let script = REACH_OUT
        .replace("KEYCTL", keyctl)
        .replace("SOCKET", socket);
    has_python
        .is_ok()
        .then(|| format!("python3 -c \"{script}\""))
}

/// Namespaces confine neither the sockets of a virtual machine nor the keys of a user.
#[test]
fn what_no_namespace_confines_can_not_be_reached() {
    let Some(script) = reach_out() else {
        eprint_uncaptured(format_args!("skipped: no python3\n"));
        return;
    };
    let expected = format!("unix\nudp\npair\n{REFUSED}");
    if let Some(CopyReplay { ran, .. }) =
        replay_on_copy(sandbox(), &[&shell(&script, &expected)], &[])
    {
        ran.assert_exit(0);
    }
}

/// Landlock knows neither Unix sockets nor UDP, and the network is everyone's there.
#[test]
fn without_namespaces_no_service_can_be_reached() {
    let Some(script) = reach_out().filter(|_| cfg!(debug_assertions)) else {
        eprint_uncaptured(format_args!("skipped: no python3, or no failpoints\n"));
        return;
    };
    let tools = TOOLS.replace(
        "properties: {script: {type: string}}, required: [script]}",
        "properties: {script: {type: string}, dir: {type: string}}}\n    paths: [dir]",
    );
    let input = json!({"script": script, "dir": "."});
    let result = ok_result(format!("pair\n{REFUSED}"));
    let recording = recorded_turn(&[("s", "shell", input, result)]);
    let sandbox = sandbox().env("TOOLQ_FAILPOINT", "confine.before:1:error");
    let CopyReplay { ran, .. } = replay_with_tools(&tools, sandbox, &[&recording], &[]).unwrap();
    if ran.stderr.contains("so none runs") {
        eprint_uncaptured(format_args!("skipped: {}\n", ran.stderr));
        return;
    }
    ran.assert_exit(0);
}

/// A tool's own sandbox holds on the copy, too, where its paths are those of the copy.
#[test]
fn a_sandbox_holds_on_the_copy() {
    let confined = TOOLS.replace(
        "description: Run a script.",
        "description: Run a script.\n    sandbox: {write: [out]}",
    );
    for (tools, is_confined) in [(TOOLS, false), (&*confined, true)] {
        let sandbox = sandbox().file("root/out/old", "old\n");
        let script = "(echo new > out/new; cat out/new poem; echo x > beside) 2> /dev/null; ls";
        let recording = shell(script, "recorded");
        let Some(CopyReplay { ran, .. }) = replay_with_tools(tools, sandbox, &[&recording], &[])
        else {
            return;
        };
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let actual = report["differ"][0]["actual"].as_str().unwrap();
        assert!(actual.contains("new\nso much depends"), "{actual}");
        assert_eq!(!actual.contains("beside"), is_confined, "{actual}");
    }
}
