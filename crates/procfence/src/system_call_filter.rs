//! Refuses system calls that reach beyond namespaces and Landlock: sockets to what isn't in the network namespace, the keys
//! of the user, and every way around this filter. This file contains unsafe code.

use std::io;
use std::mem::offset_of;

use libc::{seccomp_data, sock_filter};

/// Which sockets programs may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedSockets {
    /// Those that a network namespace confines, and Unix sockets.
    Namespaced,
    /// Only those that ask the kernel something, such as which interfaces there are. For where there is no network
    /// namespace, so that all others would reach the network.
    Kernel,
}

impl AllowedSockets {
    /// The address families. Others, such as `AF_VSOCK` to the host of a virtual machine, reach the same peers from every
    /// namespace.
    fn families(self) -> &'static [libc::c_int] {
        match self {
            Self::Namespaced => &[
                libc::AF_UNIX,
                libc::AF_INET,
                libc::AF_INET6,
                libc::AF_NETLINK,
                libc::AF_PACKET,
                libc::AF_ALG,
            ],
            Self::Kernel => &[libc::AF_NETLINK],
        }
    }
}

/// Keys aren't in a namespace: programs could use and change those of the user, and those of the shell in which toolq runs.
/// What is asked for through an `io_uring`, such as a socket, is no system call, so no filter sees it.
const REFUSED_CALLS: [libc::c_long; 4] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_io_uring_setup,
];

/// From here on, `x86_64` has the same calls again, for programs with short pointers (x32), with other numbers.
const FIRST_X32_NUMBER: u32 = 0x4000_0000;

/// The architecture whose system calls are filtered. A program for another one, such as a 32-bit program, is killed: its
/// calls have other numbers.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Filters the system calls of this process, which must be unable to gain privileges, and of all that it starts. Socket
/// pairs, by which a program talks to its own processes, stay.
///
/// # Errors
/// The kernel has no filters, or this architecture isn't known.
pub(crate) fn restrict_system_calls(allowed: AllowedSockets) -> io::Result<()> {
    let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
    let mut program = filter_program(architecture, allowed.families())?;
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel only reads the program, whose length is given.
    let result = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Builds the filter, which looks at a [`seccomp_data`].
fn filter_program(architecture: u32, families: &[libc::c_int]) -> io::Result<Vec<sock_filter>> {
    let permit = || instruction(RETURN, libc::SECCOMP_RET_ALLOW);
    let refuse =
        |errno: libc::c_int| instruction(RETURN, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs());
    // Each condition is followed by the one instruction that runs if it holds.
    let mut program = vec![
        load(offset_of!(seccomp_data, arch))?,
        skip_one_if_equal(architecture),
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        load(offset_of!(seccomp_data, nr))?,
        skip_one_if_below(FIRST_X32_NUMBER),
        // As from a kernel without them.
        refuse(libc::ENOSYS),
    ];
    for call in REFUSED_CALLS {
        program.push(skip_one_unless_equal(number(call)?));
        program.push(refuse(libc::EPERM));
    }
    program.push(skip_one_if_equal(number(libc::SYS_socket)?));
    program.push(permit());
    // The lower half of the first argument, since these architectures are little-endian.
    program.push(load(offset_of!(seccomp_data, args))?);
    for family in families {
        program.push(skip_one_unless_equal(family.unsigned_abs()));
        program.push(permit());
    }
    program.push(refuse(libc::EACCES));
    Ok(program)
}

fn load(offset: usize) -> io::Result<sock_filter> {
    let offset = u32::try_from(offset).map_err(io::Error::other)?;
    Ok(instruction(LOAD, offset))
}

fn skip_one_if_equal(value: u32) -> sock_filter {
    sock_filter {
        jt: 1,
        ..instruction(JUMP_IF_EQUAL, value)
    }
}

fn skip_one_unless_equal(value: u32) -> sock_filter {
    sock_filter {
        jf: 1,
        ..instruction(JUMP_IF_EQUAL, value)
    }
}

fn skip_one_if_below(value: u32) -> sock_filter {
    sock_filter {
        jf: 1,
        ..instruction(JUMP_IF_AT_LEAST, value)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the codes of instructions fit into 16 bits"
)]
fn instruction(code: u32, value: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    }
}

/// Returns the number of a system call as the filter sees it.
fn number(call: libc::c_long) -> io::Result<u32> {
    u32::try_from(call).map_err(io::Error::other)
}
