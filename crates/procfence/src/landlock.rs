//! Restricts this process with Landlock: which files it can write, and which processes it can signal. It does so for
//! files that are reached in any way, also through `/proc/PID/root` and device files. This file contains unsafe code.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

const WRITE_FILE: u64 = 1 << 1;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
/// Removing and making files and directories of all kinds.
const CHANGE_DIRECTORIES: u64 = 0b1_1111_1111 << 4;
/// Renaming and linking to another directory. Unlike the others, this is forbidden even if the ruleset doesn't name it.
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const BIND_AND_CONNECT_TCP: u64 = 0b11;
const SIGNALS_AND_ABSTRACT_SOCKETS: u64 = 0b11;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// Device files that every program may write.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// How much depends on Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// The rest of the file system is read-only anyway, and there is no network. Without Landlock, devices, pipes and
    /// other processes stay within reach.
    BesideMounts,
    /// Nothing else protects the file system and the network.
    Alone,
}

/// Laid out as the kernel expects it.
#[repr(C)]
struct RulesetAttributes {
    handled_files: u64,
    handled_network: u64,
    scoped: u64,
}

/// Laid out as the kernel expects it.
#[repr(C, packed)]
struct PathRule {
    allowed: u64,
    directory: i32,
}

/// Lets this process, and all that it starts, write only below `writable`, and signal only each other.
///
/// # Errors
/// The kernel doesn't have Landlock, or with [`Strictness::Alone`], not enough of it.
pub(crate) fn restrict(writable: &[PathBuf], strictness: Strictness) -> io::Result<()> {
    // 2 can allow renaming (Linux 5.19), 3 knows `truncate` (6.2), 4 TCP (6.7), and 6 signals (6.12).
    let version = version();
    let required = match strictness {
        Strictness::BesideMounts => 2,
        Strictness::Alone => 3,
    };
    if version < required {
        return Err(io::Error::other("it lacks Landlock, or has an old one"));
    }
    let changes = WRITE_FILE | REFER;
    let changes = match strictness {
        Strictness::BesideMounts => changes | MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE,
        Strictness::Alone => changes | CHANGE_DIRECTORIES | TRUNCATE,
    };
    let is_alone = strictness == Strictness::Alone;
    let ruleset = create_ruleset(&RulesetAttributes {
        handled_files: changes,
        handled_network: if is_alone && version >= 4 {
            BIND_AND_CONNECT_TCP
        } else {
            0
        },
        scoped: if version >= 6 {
            SIGNALS_AND_ABSTRACT_SOCKETS
        } else {
            0
        },
    })?;
    allow(&ruleset, Path::new("/"), REFER)?;
    for directory in writable {
        allow(
            &ruleset,
            directory,
            changes & !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE),
        )?;
    }
    for device in DEVICES {
        match allow(&ruleset, Path::new(device), WRITE_FILE | changes & TRUNCATE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            allowed => allowed?,
        }
    }
    // SAFETY: the descriptor is open.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) })
        .map(drop)
}

/// Returns the version of Landlock; 0 if the kernel has none.
pub(crate) fn version() -> libc::c_long {
    // SAFETY: with this flag, the kernel reads nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttributes>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}

fn create_ruleset(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    // SAFETY: the kernel only reads the attributes, whose size is given. What it doesn't know is zero.
    let created = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::from_ref(attributes),
            size_of::<RulesetAttributes>(),
            0_u32,
        )
    })?;
    let descriptor = i32::try_from(created).map_err(io::Error::other)?;
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Allows `changes` to everything below `path`.
fn allow(ruleset: &OwnedFd, path: &Path, changes: u64) -> io::Result<()> {
    let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;

    let rule = PathRule {
        allowed: changes,
        directory: opened.as_raw_fd(),
    };
    // SAFETY: the kernel only reads the rule, and both descriptors are open.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    })
    .map(drop)
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
