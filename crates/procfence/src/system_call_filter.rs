//! Refuses system calls that reach beyond Landlock: sockets, the keys of the user, memory that processes
//! share by number, and every way around this filter. This file contains unsafe code.

use std::collections::BTreeMap;
use std::io;
use std::mem::offset_of;

use libc::{seccomp_data, sock_filter};

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

/// The calls with which a program chooses when it runs, and where. Their first argument may be any process of the user.
const SCHEDULING_CALLS: [libc::c_long; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// These take a kind of target, such as all processes of the user, and a number. This is the kind that means one process.
const PRIORITY_CALLS: [(libc::c_long, u32); 2] = [
    (libc::SYS_setpriority, libc::PRIO_PROCESS),
    (libc::SYS_ioprio_set, 1),
];

/// The kinds of `ioctl` requests that are about terminals, pipes and sockets.
const REQUEST_KINDS: [u32; 2] = [0x5400, 0x8900];
/// The bits of a request that are its kind.
const KIND_MASK: u32 = 0xFF00;

/// Requests that read what a file is. Every file system has others of its own that change files which were only opened for
/// reading, and how a request is declared doesn't tell them apart.
const READING_REQUESTS: [u32; 5] = [
    0x2,         // FIGETBSZ
    0x8008_6601, // FS_IOC_GETFLAGS
    0x8008_7601, // FS_IOC_GETVERSION
    0x801C_581F, // FS_IOC_FSGETXATTR
    0xC020_660B, // FS_IOC_FIEMAP
];

/// What a reaper gives up for good to start programs with this sandbox, and all with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SandboxShape {
    pub(crate) sockets: SandboxSockets,
    /// Whether programs may change files that aren't temporary.
    pub(crate) changes_files: bool,
}

/// The sockets that programs may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxSockets {
    None,
    All,
    TcpClients,
}

/// Builds the filter of sandboxes.
///
/// # Errors
/// This architecture is unknown.
pub(crate) fn sandbox_filter(shape: SandboxShape) -> io::Result<SystemCallFilter> {
    let mut program = FilterProgram::default();
    program.refuse(&UNCONFINED_CALLS, libc::EPERM)?;
    program.refuse(&SHARED_BY_NUMBER, libc::EPERM)?;
    confine_to_itself(&mut program)?;
    if !shape.changes_files {
        program.refuse(METADATA_CALLS, libc::EPERM)?;
        let kind = (libc::SYS_ioctl, 1, KIND_MASK);
        program.answer_values(kind, &REQUEST_KINDS, permission())?;
        let request = (libc::SYS_ioctl, 1, u32::MAX);
        program.allow_only(request, &READING_REQUESTS, libc::EPERM)?;
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

/// Leaves a process its own limits and scheduling, as process 0: a filter can't know which other numbers are its children. A
/// limit of zero kills a process as surely as a signal, and one that is never scheduled is as good as dead.
fn confine_to_itself(program: &mut FilterProgram) -> io::Result<()> {
    for call in SCHEDULING_CALLS.into_iter().chain([libc::SYS_prlimit64]) {
        program.allow_only((call, 0, u32::MAX), &[0], libc::EPERM)?;
    }
    for (call, process) in PRIORITY_CALLS {
        program.allow_only((call, 0, u32::MAX), &[process], libc::EPERM)?;
        program.allow_only((call, 1, u32::MAX), &[0], libc::EPERM)?;
    }
    Ok(())
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
        let refusal = refusal(libc::EACCES);
        program.answer_values((call, flags, fast_open), &[fast_open], refusal)?;
    }
    Ok(())
}

// How such a filter (seccomp) is built and applied.

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
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// A system call, the position of one of its arguments, and the bits of it that count. Arguments that the kernel takes as
/// 32 bits have only those.
type CallArgument = (libc::c_long, usize, u32);

/// A filter that isn't complete.
#[derive(Debug, Default)]
struct FilterProgram {
    /// The instructions for each system call, by its number. A call that passes all of its instructions is allowed.
    rules: BTreeMap<u32, Vec<sock_filter>>,
}

/// A filter of system calls.
#[derive(Debug)]
pub(crate) struct SystemCallFilter(Vec<sock_filter>);

impl FilterProgram {
    /// Refuses these calls.
    fn refuse(&mut self, calls: &[libc::c_long], errno: libc::c_int) -> io::Result<()> {
        for call in calls {
            self.rules_of(*call)?.push(refusal(errno));
        }
        Ok(())
    }

    /// Refuses a call unless an argument has one of these values.
    fn allow_only(
        &mut self,
        (call, position, bits): CallArgument,
        values: &[u32],
        errno: libc::c_int,
    ) -> io::Result<()> {
        let count = u8::try_from(values.len()).map_err(io::Error::other)?;
        let rules = self.rules_of(call)?;
        rules.extend(load_argument(position, bits)?);
        // Skips the other comparisons, and the refusal.
        let comparisons = (0..count).rev().zip(values);
        rules.extend(comparisons.map(|(left, value)| jump(JUMP_IF_EQUAL, *value, left + 1, 0)));
        rules.push(refusal(errno));
        Ok(())
    }

    /// Decides about a call if an argument has one of these values.
    fn answer_values(
        &mut self,
        (call, position, bits): CallArgument,
        values: &[u32],
        answer: sock_filter,
    ) -> io::Result<()> {
        let rules = self.rules_of(call)?;
        rules.extend(load_argument(position, bits)?);
        for value in values {
            rules.extend([jump(JUMP_IF_EQUAL, *value, 0, 1), answer]);
        }
        Ok(())
    }

    fn rules_of(&mut self, call: libc::c_long) -> io::Result<&mut Vec<sock_filter>> {
        let number = u32::try_from(call).map_err(io::Error::other)?;
        Ok(self.rules.entry(number).or_default())
    }

    /// Completes the filter: it allows everything else, and refuses what is made for other architectures.
    ///
    /// # Errors
    /// This architecture is unknown, or the filter is too long.
    fn finish(self) -> io::Result<SystemCallFilter> {
        let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
        let mut program = vec![
            load(offset_of!(seccomp_data, arch))?,
            jump(JUMP_IF_EQUAL, architecture, 1, 0),
            instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
            load(offset_of!(seccomp_data, nr))?,
            jump(JUMP_IF_AT_LEAST, FIRST_X32_NUMBER, 0, 1),
            // As from a kernel without them.
            refusal(libc::ENOSYS),
        ];
        let rules: Vec<(u32, Vec<sock_filter>)> = self.rules.into_iter().collect();
        program.extend(search_tree(&rules)?);
        Ok(SystemCallFilter(program))
    }
}

/// Returns instructions that find the rule of a call by halving, since the kernel follows them for every number when the
/// filter is applied.
fn search_tree(rules: &[(u32, Vec<sock_filter>)]) -> io::Result<Vec<sock_filter>> {
    let too_far = |_| io::Error::other("the filter is too long");
    match rules {
        [] => Ok(vec![permission()]),
        [(number, rule)] => {
            let length = u8::try_from(rule.len()).map_err(too_far)?;
            let mut leaf = vec![jump(JUMP_IF_EQUAL, *number, 0, length)];
            leaf.extend_from_slice(rule);
            leaf.push(permission());
            Ok(leaf)
        }
        _ => {
            let (lower, upper) = rules.split_at(rules.len() / 2);
            let (first_of_upper, _) = upper[0];
            let lower = search_tree(lower)?;
            let length = u8::try_from(lower.len()).map_err(too_far)?;
            let mut tree = vec![jump(JUMP_IF_AT_LEAST, first_of_upper, length, 0)];
            tree.extend(lower);
            tree.extend(search_tree(upper)?);
            Ok(tree)
        }
    }
}

/// Loads these bits of an argument.
fn load_argument(position: usize, bits: u32) -> io::Result<[sock_filter; 2]> {
    Ok([
        // The lower half of the argument, since these architectures are little-endian.
        load(offset_of!(seccomp_data, args) + size_of::<u64>() * position)?,
        instruction(AND, bits),
    ])
}

impl SystemCallFilter {
    /// Filters the system calls of this process, which must be unable to gain privileges, and of all that it starts.
    ///
    /// # Errors
    /// The kernel has no filters.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.0.len()).map_err(io::Error::other)?,
            filter: self.0.as_ptr().cast_mut(),
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
}

fn load(offset: usize) -> io::Result<sock_filter> {
    let offset = u32::try_from(offset).map_err(io::Error::other)?;
    Ok(instruction(LOAD, offset))
}

fn permission() -> sock_filter {
    instruction(RETURN, libc::SECCOMP_RET_ALLOW)
}

fn refusal(errno: libc::c_int) -> sock_filter {
    instruction(RETURN, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs())
}

/// Returns a jump over this many instructions if the comparison holds, and this many if it doesn't.
fn jump(comparison: u32, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter {
        jt: if_so,
        jf: if_not,
        ..instruction(comparison, value)
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
