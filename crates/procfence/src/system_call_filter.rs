//! Refuses system calls that reach beyond Landlock: sockets, the keys of the user, memory that processes
//! share by number, and every way around this filter.

use std::io;

use crate::filter_program::{FilterProgram, SystemCallFilter};
use crate::sandbox::{SandboxShape, SandboxSockets};

/// With keys, a program could use and change those of the user. Operations of an `io_uring`, such as
/// opening a socket, aren't system calls, so this filter doesn't see them.
const UNCONFINED_CALLS: [libc::c_long; 4] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_io_uring_setup,
];

/// Memory, semaphores and queues that other processes of the user have, and that no path leads to. `/proc` shows the
/// numbers by which they are used.
const SHARED_BY_NUMBER: [libc::c_long; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// These change files that were only opened for reading, or not at all; Landlock doesn't see them.
const METADATA_CALLS: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    libc::SYS_utimensat,
    FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Newer system calls, which have the same number on every architecture.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;

/// The lower bits of a socket's type; the others are flags.
const TYPE_MASK: u32 = 0xF;

/// `ioctl` requests that change the attributes of a file: `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
const ATTRIBUTE_REQUESTS: [u32; 2] = [0x4008_6602, 0x401C_5820];

/// Builds the filter of sandboxes.
///
/// # Errors
/// This architecture is unknown.
pub(crate) fn sandbox_filter(shape: SandboxShape) -> io::Result<SystemCallFilter> {
    let mut program = FilterProgram::default();
    program.refuse(&UNCONFINED_CALLS, libc::EPERM)?;
    program.refuse(&SHARED_BY_NUMBER, libc::EPERM)?;
    // A limit of zero kills a process as surely as a signal.
    program.allow_only((libc::SYS_prlimit64, 0, u32::MAX), &[0], libc::EPERM)?;
    // All processes of the user can be slowed down at once.
    program.refuse_values(
        (libc::SYS_setpriority, 0, u32::MAX),
        &[libc::PRIO_USER],
        libc::EPERM,
    )?;
    if !shape.changes_files {
        program.refuse(METADATA_CALLS, libc::EPERM)?;
        program.refuse_values(
            (libc::SYS_ioctl, 1, u32::MAX),
            &ATTRIBUTE_REQUESTS,
            libc::EPERM,
        )?;
    }
    match shape.sockets {
        SandboxSockets::All => {}
        SandboxSockets::None => {
            allow_connected_pairs(&mut program)?;
            program.refuse(&[libc::SYS_socket], libc::EACCES)?;
        }
        SandboxSockets::TcpClients => {
            allow_connected_pairs(&mut program)?;
            allow_tcp_clients(&mut program)?;
        }
    }
    program.finish()
}

/// Leaves pairs of sockets that can't be connected to anything else, as those for datagrams can.
fn allow_connected_pairs(program: &mut FilterProgram) -> io::Result<()> {
    let families = [libc::AF_UNIX.unsigned_abs()];
    program.allow_only((libc::SYS_socketpair, 0, u32::MAX), &families, libc::EACCES)?;
    let kinds = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(libc::c_int::unsigned_abs);
    program.allow_only((libc::SYS_socketpair, 1, TYPE_MASK), &kinds, libc::EACCES)
}

/// Leaves TCP as the only protocol, and `connect` as the only way to begin a connection, since that is what Landlock sees.
fn allow_tcp_clients(program: &mut FilterProgram) -> io::Result<()> {
    let families = [libc::AF_INET, libc::AF_INET6].map(libc::c_int::unsigned_abs);
    program.allow_only((libc::SYS_socket, 0, u32::MAX), &families, libc::EACCES)?;
    let stream = libc::SOCK_STREAM.unsigned_abs();
    program.allow_only((libc::SYS_socket, 1, TYPE_MASK), &[stream], libc::EACCES)?;
    let protocols = [0, libc::IPPROTO_TCP.unsigned_abs()];
    program.allow_only((libc::SYS_socket, 2, u32::MAX), &protocols, libc::EACCES)?;
    // On a socket without an address, it chooses a port by itself.
    program.refuse(&[libc::SYS_listen], libc::EACCES)?;
    // The first data of a connection can be sent along with its beginning.
    let fast_open = libc::MSG_FASTOPEN.unsigned_abs();
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        program.refuse_values((call, flags, fast_open), &[fast_open], libc::EACCES)?;
    }
    Ok(())
}
