//! Tests of both ways to start a program: with `posix_spawn`, and for older C libraries with a fork.

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, waitpid};

use super::*;
use crate::program::ResourceLimits;

type Spawn = fn(&SpawnRequest, &ChildDescriptors<'_>) -> Result<Pid, c_int>;

const WAYS: [(&str, Spawn); 2] = [("posix_spawn", spawn), ("fork", fork_spawn)];

fn shell(script: &str) -> SpawnRequest {
    SpawnRequest {
        path: c"/bin/sh".to_owned(),
        argv: ["name-of-its-own", "-c", script]
            .map(|argument| CString::new(argument).unwrap())
            .into(),
        env: vec![c"GREETING=hello".to_owned(), c"EMPTY=".to_owned()],
        cwd: c"/".to_owned(),
        limits: ResourceLimits::default(),
        sandbox: None,
        host_exit_grace: Duration::ZERO,
        reports_pid: false,
    }
}

/// Runs a program with nothing to read. Returns what it wrote to stdout, and its pid.
fn run(spawn: Spawn, request: &SpawnRequest) -> Result<(String, Pid), c_int> {
    let dev_null = File::options().read(true).write(true).open("/dev/null");
    let dev_null = fcntl_dupfd_cloexec(dev_null.unwrap(), 4).unwrap();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let writer = fcntl_dupfd_cloexec(writer, 4).unwrap();
    let null = dev_null.as_fd();
    let pid = spawn(request, &[null, writer.as_fd(), null, null])?;
    drop(writer);
    let mut output = String::new();
    File::from(reader).read_to_string(&mut output).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.exit_status(), Some(0), "{output}");
    Ok((output, pid))
}

#[test]
fn a_program_gets_its_arguments_variables_and_directory() {
    for (way, spawn) in WAYS {
        let script = r#"echo "$0 $GREETING ${EMPTY-unset} ${HOME-unset}"; pwd"#;
        let mut request = shell(script);
        request.cwd = c"/usr".to_owned();
        let (output, _) = run(spawn, &request).unwrap();
        assert_eq!(output, "name-of-its-own hello  unset\n/usr\n", "{way}");
    }
}

#[test]
fn a_program_gets_no_other_descriptors() {
    let file = File::open("/dev/null").unwrap();
    // Inherited by programs, as what the host itself has inherited.
    let inherited = fcntl_dupfd_cloexec(file, 700).unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    for (way, spawn) in WAYS {
        let (output, _) = run(spawn, &shell("ls /proc/$$/fd; exit 0")).unwrap();
        assert_eq!(output, "0\n1\n2\n3\n", "{way}");
    }
}

#[test]
fn a_program_leads_its_own_session_and_group() {
    for (way, spawn) in WAYS {
        let (output, pid) = run(spawn, &shell("cat /proc/$$/stat; exit 0")).unwrap();
        let fields: Vec<&str> = output.split(' ').collect();
        let pid = pid.as_raw_nonzero().to_string();
        assert_eq!([fields[0], fields[4], fields[5]], [&*pid; 3], "{way}");
    }
}

#[test]
fn a_program_gets_default_signals_and_this_thread_keeps_its_own() {
    let blocked = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("SigBlk:"));
        line.unwrap().to_owned()
    };
    // SAFETY: the set is initialized before it is read.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
    }
    let before = blocked();
    // The test's own process ignores SIGPIPE, as any in Rust.
    for (way, spawn) in WAYS {
        let script = "while read name value; do case $name in SigBlk:|SigIgn:) echo $value; esac; done < /proc/$$/status";
        let (output, _) = run(spawn, &shell(script)).unwrap();
        for signals in output.lines() {
            let signals = u64::from_str_radix(signals, 16).unwrap();
            // glibc's posix_spawn has its two internal signals ignored, 32 and 33.
            assert_eq!(signals & !(0b11 << 31), 0, "{way}");
        }
        assert_eq!(output.lines().count(), 2, "{way}");
        assert_eq!(blocked(), before, "{way}");
    }
}

#[test]
fn a_program_that_cannot_start_is_an_error_and_leaves_no_child() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("not-a-program");
    let mut file = File::create(&script).unwrap();
    file.write_all(b"\x7fELF").unwrap();
    drop(file);
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let script = CString::new(script.to_str().unwrap()).unwrap();
    for (way, spawn) in WAYS {
        let missing = SpawnRequest {
            path: c"/missing/program".to_owned(),
            ..shell("")
        };
        let no_directory = SpawnRequest {
            cwd: c"/missing".to_owned(),
            ..shell("")
        };
        let not_executable = SpawnRequest {
            path: c"/etc/passwd".to_owned(),
            ..shell("")
        };
        let not_a_program = SpawnRequest {
            path: script.clone(),
            ..shell("")
        };
        for (request, errno) in [
            (missing, libc::ENOENT),
            (no_directory, libc::ENOENT),
            (not_executable, libc::EACCES),
            (not_a_program, libc::ENOEXEC),
        ] {
            assert_eq!(run(spawn, &request).map(|_| ()), Err(errno), "{way}");
        }
        // Children of this thread alone: other tests have some, too.
        let children = std::fs::read_to_string("/proc/thread-self/children").unwrap();
        assert_eq!(children, "", "{way}");
    }
}
