//! Gives up what the superuser could do beyond its own files.

use std::io;

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Takes from the programs of the superuser what could undo the confinement or reach around it: `mount -o remount,rw`,
/// `mknod`, `/proc/1/root`, `reboot`, `date -s`. What concerns the owners of files stays.
///
/// # Errors
/// The system doesn't allow it.
pub(crate) fn drop_privileges() -> io::Result<()> {
    const KEPT: CapabilitySet = CapabilitySet::CHOWN
        .union(CapabilitySet::DAC_OVERRIDE)
        .union(CapabilitySet::FOWNER)
        .union(CapabilitySet::FSETID)
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::SETUID)
        .union(CapabilitySet::SETPCAP)
        .union(CapabilitySet::SETFCAP)
        .union(CapabilitySet::SYS_CHROOT)
        .union(CapabilitySet::NET_BIND_SERVICE)
        .union(CapabilitySet::NET_RAW);
    set_no_new_privs(true)?;
    // A program could regain capabilities that a parent made inheritable: the bounding set doesn't remove them. Ambient
    // capabilities are a subset of the inheritable ones, so they are cleared, too.
    set_capabilities(
        None,
        CapabilitySets {
            inheritable: CapabilitySet::empty(),
            ..capabilities(None)?
        },
    )?;
    if !geteuid().is_root() {
        return Ok(());
    }
    for capability in CapabilitySet::all().difference(KEPT) {
        match remove_capability_from_bounding_set(capability) {
            // The kernel is older than this capability.
            Err(Errno::INVAL) if capability != CapabilitySet::SYS_ADMIN => {}
            removed => removed?,
        }
    }
    Ok(())
}
