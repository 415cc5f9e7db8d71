//! Prepares the sandboxes of a reaper's calls, one after the other.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use crate::sandbox::private_temp_dir::{PrivateTempDir, TempDirRemover};
use crate::sandbox::ruleset::prepare_ruleset;
use crate::sandbox::{PathAccess, PreparedSandbox, ProgramSandbox, SandboxPath, SandboxShape};
use crate::system_call_filter::sandbox_filter;

/// What a reaper keeps between the calls that it confines.
#[derive(Default)]
pub(crate) struct ReaperSandboxes {
    /// What it gave up.
    shape: Option<SandboxShape>,
    temp_dir: Option<PrivateTempDir>,
    temp_dir_remover: Option<TempDirRemover>,
}

impl ReaperSandboxes {
    /// Returns whether this reaper can start a program with a sandbox of this shape, or without one.
    pub(crate) fn can_serve(&self, shape: Option<SandboxShape>) -> bool {
        self.shape.is_none() || self.shape == shape
    }

    /// Prepares `sandbox` for a program with these variables, one of which will name its temporary directory.
    ///
    /// # Errors
    /// The system can't confine the program, or is out of resources.
    pub(crate) fn prepare(
        &mut self,
        sandbox: &ProgramSandbox,
        env: &mut Vec<CString>,
    ) -> io::Result<PreparedSandbox> {
        if self.shape.is_none() {
            let filter = sandbox_filter(sandbox.shape())?;
            drop_privileges()?;
            self.temp_dir_remover = Some(TempDirRemover::start()?);
            filter.apply()?;
            self.shape = Some(sandbox.shape());
        }
        let mut sandbox = sandbox.clone();
        sandbox.paths.push(SandboxPath {
            path: self.provide_temp_dir(env)?.to_owned(),
            access: PathAccess::Write,
            stays_inside: false,
        });
        prepare_ruleset(&sandbox)
    }

    /// Returns an empty temporary directory, which a variable then names.
    fn provide_temp_dir(&mut self, env: &mut Vec<CString>) -> io::Result<&Path> {
        let outer = PrivateTempDir::take_outer(env);
        let temp_dir = PrivateTempDir::create(&outer)?;
        env.push(temp_dir.variable()?);
        Ok(self.temp_dir.insert(temp_dir).path())
    }

    /// Removes the temporary directory of a call. If processes of the call are still running, it is left to them.
    pub(crate) fn finish_call(&mut self, is_gone: bool) {
        let Some(temp_dir) = self.temp_dir.take() else {
            return;
        };
        if !is_gone {
            temp_dir.keep();
        } else if let Some(remover) = &self.temp_dir_remover {
            remover.remove(temp_dir);
        }
    }
}

// Gives up what the superuser could do beyond its own files.

/// Takes from the programs of the superuser what could undo the confinement or reach around it: `mount -o remount,rw`,
/// `mknod`, `/proc/1/root`, `reboot`, `date -s`. What concerns the owners of files stays.
///
/// # Errors
/// The system doesn't allow it.
fn drop_privileges() -> io::Result<()> {
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
