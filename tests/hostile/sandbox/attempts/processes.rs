//! Attempts to reach other processes, their memory and their rights.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::sandbox::attempts::{AttemptResult, expect_canary};
use crate::sandbox::outside::{CANARY, Facts};
use crate::sandbox::system_calls::{call, check, read_memory_by_number, read_shared_memory};

pub fn signal(_: &Path, facts: &Facts) -> AttemptResult {
    Ok(kill_process(victim(facts), Signal::CONT)?)
}

pub fn signal_by_descriptor(_: &Path, facts: &Facts) -> AttemptResult {
    let process = pidfd_open(victim(facts), PidfdFlags::empty())?;
    Ok(pidfd_send_signal(process, Signal::CONT)?)
}

/// Limits another process to nothing, which kills it sooner or later; here, to what it has.
pub fn limit_process(_: &Path, facts: &Facts) -> AttemptResult {
    let mut limit = [0_u64; 2];
    let victim = facts.victim() as usize;
    // SAFETY: a limit has two numbers.
    unsafe {
        let limit = limit.as_mut_ptr().addr();
        call(
            libc::SYS_prlimit64,
            [victim, libc::RLIMIT_CORE as usize, 0, limit, 0],
        )?;
        call(
            libc::SYS_prlimit64,
            [victim, libc::RLIMIT_CORE as usize, limit, 0, 0],
        )?;
    }
    Ok(())
}

/// Binds another process to the processors that it may run on anyway.
pub fn bind_to_processors(_: &Path, facts: &Facts) -> AttemptResult {
    let processors = rustix::thread::sched_getaffinity(Some(victim(facts)))?;
    Ok(rustix::thread::sched_setaffinity(
        Some(victim(facts)),
        &processors,
    )?)
}

/// Schedules another process as it is scheduled already.
pub fn schedule(number: libc::c_long, facts: &Facts) -> AttemptResult {
    let victim = facts.victim() as usize;
    // The size of the attributes, and then nothing but zeros: the usual policy, and a priority of zero.
    let attributes = [48_u64, 0, 0, 0, 0, 0];
    let sized = attributes.as_ptr().addr();
    let zeros = attributes[1..].as_ptr().addr();
    let (one_process, one_process_of_input) = (libc::PRIO_PROCESS as usize, 1);
    let arguments = match number {
        libc::SYS_sched_setscheduler => [victim, 0, zeros, 0, 0],
        libc::SYS_sched_setparam => [victim, zeros, 0, 0, 0],
        libc::SYS_sched_setattr => [victim, sized, 0, 0, 0],
        libc::SYS_setpriority => [one_process, victim, 0, 0, 0],
        _ => [one_process_of_input, victim, 0, 0, 0],
    };
    // SAFETY: the kernel reads no more than the attributes.
    unsafe { call(number, arguments) }?;
    Ok(())
}

pub fn trace(_: &Path, facts: &Facts) -> AttemptResult {
    let pid = facts.victim();
    // SAFETY: attaching and detaching touch no memory of this process.
    unsafe {
        check(libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0))?;
        libc::waitpid(pid, std::ptr::null_mut(), 0);
        check(libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0))?;
    }
    Ok(())
}

pub fn read_memory(_: &Path, facts: &Facts) -> AttemptResult {
    let mut bytes = [0; CANARY.len()];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let address = usize::try_from(facts.number("canary_address"))?;
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: bytes.len(),
    };
    // SAFETY: the local buffer is as long as it says.
    let read = unsafe {
        libc::process_vm_readv(facts.victim(), &raw const local, 1, &raw const remote, 1, 0)
    };
    check(read as i64)?;
    expect_canary(bytes)
}

pub fn read_environment(_: &Path, facts: &Facts) -> AttemptResult {
    let environment = fs::read_to_string(format!("/proc/{}/environ", facts.victim()))?;
    if environment.contains(CANARY) {
        Ok(())
    } else {
        Err("the canary isn't there".into())
    }
}

/// Takes a descriptor out of another process.
pub fn take_descriptor(_: &Path, facts: &Facts) -> AttemptResult {
    let process = pidfd_open(victim(facts), PidfdFlags::empty())?;
    rustix::process::pidfd_getfd(process, 0, rustix::process::PidfdGetfdFlags::empty())?;
    Ok(())
}

/// Has the system kill another process first when memory gets short.
pub fn offer_to_oom_killer(_: &Path, facts: &Facts) -> AttemptResult {
    let path = format!("/proc/{}/oom_score_adj", facts.victim());
    OpenOptions::new().write(true).open(path)?;
    Ok(())
}

pub fn read_shared(_: &Path, facts: &Facts) -> AttemptResult {
    let key = i32::try_from(facts.number("memory"))?;
    expect_canary(read_shared_memory(key, CANARY.len())?)
}

/// Uses the number that `/proc/sysvipc/shm` shows.
pub fn read_shared_by_number(_: &Path, facts: &Facts) -> AttemptResult {
    let id = i32::try_from(facts.number("memory_number"))?;
    expect_canary(read_memory_by_number(id, CANARY.len())?)
}

/// Clones a mount, and opens a file in the clone, which isn't mounted anywhere.
pub fn read_from_cloned_mount(place: &Path, _: &Facts) -> AttemptResult {
    // SAFETY: this only takes numbers.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }.into())?;
    let clone = rustix::mount::OpenTreeFlags::OPEN_TREE_CLONE;
    let tree = rustix::mount::open_tree(rustix::fs::CWD, place, clone)?;
    let flags = rustix::fs::OFlags::RDONLY;
    let file = rustix::fs::openat(&tree, "canary", flags, rustix::fs::Mode::empty())?;
    expect_canary(std::io::read_to_string(fs::File::from(file))?)
}

/// Opens a queue of messages, which other processes of the user can open, too.
pub fn open_message_queue(_: &Path, _: &Facts) -> AttemptResult {
    let name = CString::new(format!("/toolq-sandbox-test-{}", std::process::id()))?;
    // SAFETY: the name ends with a NUL; the default attributes are used.
    unsafe {
        let queue = libc::mq_open(
            name.as_ptr(),
            libc::O_CREAT | libc::O_RDWR,
            0o600,
            std::ptr::null_mut::<libc::mq_attr>(),
        );
        check(queue.into())?;
        libc::mq_unlink(name.as_ptr());
    }
    Ok(())
}

/// Reads the keys of the user.
pub fn use_keys(_: &Path, _: &Facts) -> AttemptResult {
    const GET_KEYRING: usize = 0;
    const USER_KEYRING: usize = 4_usize.wrapping_neg();
    // SAFETY: this only takes numbers.
    unsafe { call(libc::SYS_keyctl, [GET_KEYRING, USER_KEYRING, 1, 0, 0])? };
    Ok(())
}

/// Mounts what is outside into the root, in namespaces where unprivileged users may mount.
pub fn mount_in_namespace(place: &Path, _: &Facts) -> AttemptResult {
    let script = "mkdir -p mounted && mount --bind \"$1\" mounted && cat mounted/canary";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .arg(place)
        .output()?;
    expect_canary(output.stdout)
}

/// Only makes the namespaces, and reads from there.
pub fn read_in_namespace(place: &Path, _: &Facts) -> AttemptResult {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--pid", "--fork", "cat"])
        .arg(place.join("canary"))
        .output()?;
    expect_canary(output.stdout)
}

/// Makes the directory outside its root.
pub fn change_root(place: &Path, _: &Facts) -> AttemptResult {
    rustix::process::chroot(place)?;
    std::env::set_current_dir("/")?;
    expect_canary(fs::read("/canary")?)
}

/// Becomes another user, and the superuser again by a program that does that.
pub fn run_setuid_program(_: &Path, _: &Facts) -> AttemptResult {
    let copy = std::env::current_dir()?.join("setuid-id");
    fs::copy("/usr/bin/id", &copy)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755))?;
    let output = Command::new(&copy)
        .arg("-u")
        .uid(65_534)
        .gid(65_534)
        .output()?;
    if output.stdout == b"0\n" {
        Ok(())
    } else {
        Err("the program runs as its caller".into())
    }
}

/// Mounts anything, as the superuser may.
pub fn mount(_: &Path, _: &Facts) -> AttemptResult {
    let output = Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into())
    }
}

/// Runs a program that isn't in the lists.
pub fn run_program_outside(place: &Path, _: &Facts) -> AttemptResult {
    expect_canary(Command::new(place.join("script")).output()?.stdout)
}

/// Leaves its session and its parent before it reads.
pub fn read_as_daemon(place: &Path, _: &Facts) -> AttemptResult {
    let mut command = Command::new("setsid");
    command.args(["--wait", "sh", "-c", "(cat \"$1\" & wait)", "sh"]);
    expect_canary(command.arg(place.join("canary")).output()?.stdout)
}

/// Reads a descriptor that toolq's parent left open.
pub fn read_inherited_descriptor(_: &Path, _: &Facts) -> AttemptResult {
    for descriptor in 4..1024 {
        if let Ok(bytes) = fs::read(format!("/proc/self/fd/{descriptor}"))
            && expect_canary(bytes).is_ok()
        {
            return Ok(());
        }
    }
    Err("there is none".into())
}

/// Opens a socket by the number that it has in 32-bit programs.
#[cfg(target_arch = "x86_64")]
pub fn call_as_32_bit_program(_: &Path, _: &Facts) -> AttemptResult {
    const SOCKET: u64 = 359;
    let result: u64;
    // SAFETY: the call only takes numbers. The register that the compiler reserves is restored.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "mov rbx, 2",
            "int 0x80",
            "pop rbx",
            inlateout("rax") SOCKET => result,
            in("rcx") 1_u64,
            in("rdx") 0_u64,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    let result = i32::try_from(result.cast_signed()).unwrap_or(-1);
    check((result.max(-1)).into())?;
    Ok(())
}

/// As the other, but there is no such call elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub fn call_as_32_bit_program(_: &Path, _: &Facts) -> AttemptResult {
    Err("only for x86".into())
}

fn victim(facts: &Facts) -> Pid {
    Pid::from_raw(facts.victim()).unwrap()
}
