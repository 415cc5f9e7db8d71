//! System calls that confine a supervisor to namespaces of its own. This file contains unsafe code.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;

use libc::{c_char, c_int};

use crate::sys::check_result;

/// The namespaces of a confined supervisor, besides one for users: mounts, network and System V IPC.
pub(crate) const CONFINED_NAMESPACES: c_int =
    libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;

/// Gives this process namespaces of its own.
pub(crate) fn unshare(namespaces: c_int) -> io::Result<()> {
    // SAFETY: this process has a single thread, and shares no descriptors.
    check_result(unsafe { libc::unshare(namespaces) }).map(drop)
}

/// Makes the mount at `path` and all mounts below it read-only.
pub(crate) fn make_mounts_read_only(path: &CStr) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the kernel only reads the path and the attributes, whose size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Enables the loopback interface of this process's network namespace.
pub(crate) fn enable_loopback() -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // SAFETY: all zeros are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (character, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *character = byte.cast_signed() as c_char;
    }
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING);
    request.ifr_ifru.ifru_flags = flags.map_err(io::Error::other)?;
    // SAFETY: the kernel only reads the request.
    check_result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })
        .map(drop)
}
