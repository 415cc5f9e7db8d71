//! Makes a program see a kernel without Landlock.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the kernel answer the program that it doesn't know Landlock, as before Linux 5.13.
pub fn take_away_landlock(command: &mut Command) {
    // SAFETY: only system calls that are safe between fork and exec are made, on data of this function.
    unsafe {
        command.pre_exec(install_filter);
    }
}

fn install_filter() -> io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt: 0,
        jf: 0,
        k,
    };
    let refused = u32::try_from(libc::SYS_landlock_create_ruleset).unwrap_or_default();
    let no_such_call = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap_or_default();
    let mut filter = [
        // The number of the system call is the first member of what a filter sees.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, refused)
        },
        statement(libc::BPF_RET | libc::BPF_K, no_such_call),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the filter outlives the call, which copies it.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
