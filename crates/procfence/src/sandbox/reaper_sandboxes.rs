//! Prepares the sandboxes of a reaper's calls, one after the other.

use std::ffi::{CString, OsStr};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmodat, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};
use tempfile::TempDir;

use crate::sandbox::ruleset::{PreparedSandbox, prepare_ruleset};
use crate::sandbox::{PathAccess, ProgramSandbox, SandboxPath};
use crate::system_call_filter::{SandboxShape, sandbox_filter};

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

// The temporary directory of a confined program.

const VARIABLE: &[u8] = b"TMPDIR=";

/// A directory that only one call has, in the directory that `TMPDIR` named.
#[derive(Debug)]
pub(crate) struct PrivateTempDir(TempDir);

impl PrivateTempDir {
    /// Removes `TMPDIR` from `env`, and returns the directory that it named.
    pub(crate) fn take_outer(env: &mut Vec<CString>) -> PathBuf {
        let is_variable = |variable: &CString| variable.as_bytes().starts_with(VARIABLE);
        let outer = env.iter().find(|variable| is_variable(variable));
        let outer = outer.map(|variable| OsStr::from_bytes(&variable.as_bytes()[VARIABLE.len()..]));
        let outer = outer.map(Path::new).filter(|outer| outer.is_absolute());
        let outer = outer.unwrap_or(Path::new("/tmp")).to_owned();
        env.retain(|variable| !is_variable(variable));
        outer
    }

    /// Creates a directory in `outer`.
    ///
    /// # Errors
    /// The system doesn't allow it.
    pub(crate) fn create(outer: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder
            .prefix("call-")
            .permissions(Permissions::from_mode(0o700));
        builder.tempdir_in(outer).map(Self)
    }

    /// Returns the variable that names the directory.
    pub(crate) fn variable(&self) -> io::Result<CString> {
        let path = self.path().as_os_str().as_bytes();
        Ok(CString::new([VARIABLE, path].concat())?)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes the directory and everything in it.
    fn remove(self) {
        let _ = fs::set_permissions(self.path(), Permissions::from_mode(0o700));
        let _ = empty(self.path());
        drop(self);
    }

    /// Leaves the directory to processes that continue to run.
    pub(crate) fn keep(self) {
        let _ = self.0.keep();
    }
}

/// A thread that removes directories. Its reaper refuses itself what it refuses its programs, such as changing who may list
/// a directory; a thread that was started before does not.
#[derive(Debug)]
pub(crate) struct TempDirRemover {
    directories: Sender<PrivateTempDir>,
    removals: Receiver<()>,
}

impl TempDirRemover {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system is out of threads.
    pub(crate) fn start() -> io::Result<Self> {
        let (directories, waiting) = mpsc::channel::<PrivateTempDir>();
        let (done, removals) = mpsc::channel();
        std::thread::Builder::new()
            .name("temp-dir-remover".to_owned())
            .spawn(move || {
                for directory in waiting {
                    directory.remove();
                    if done.send(()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            directories,
            removals,
        })
    }

    /// Removes a directory and waits until it is gone: no other thread may be busy when the reaper starts a program.
    pub(crate) fn remove(&self, directory: PrivateTempDir) {
        if self.directories.send(directory).is_ok() {
            let _ = self.removals.recv();
        }
    }
}

// Removes what is in a directory, however deep it is: longer paths than the system takes, and deeper trees than descriptors may be
// open. Each directory is opened from the one above it, whose identity is compared on the way back.

/// A directory whose entries are being removed.
struct OpenDir {
    /// Its name in the directory above.
    name: CString,
    /// Its device and inode.
    identity: (u64, u64),
    /// The directories in it that are still to be emptied.
    left: Vec<CString>,
}

/// Removes what is in a directory, as far as possible.
fn empty(directory: &Path) -> rustix::io::Result<()> {
    let mut current = openat(CWD, directory, DIRECTORY_FLAGS, Mode::empty())?;
    let mut above = vec![OpenDir::clear(&current, CString::default())?];
    while let Some(last) = above.last_mut() {
        if let Some(name) = last.left.pop() {
            // A program may have kept others from listing it.
            let _ = chmodat(&current, &name, Mode::RWXU, AtFlags::empty());
            if let Ok(below) = openat(&current, &name, DIRECTORY_FLAGS, Mode::empty()) {
                above.push(OpenDir::clear(&below, name)?);
                current = below;
            }
            continue;
        }
        let Some(done) = above.pop() else { break };
        let Some(parent) = above.last() else { break };
        current = openat(&current, c"..", DIRECTORY_FLAGS, Mode::empty())?;
        if identity(&current)? != parent.identity {
            return Err(Errno::LOOP);
        }
        let _ = unlinkat(&current, &done.name, AtFlags::REMOVEDIR);
    }
    Ok(())
}

const DIRECTORY_FLAGS: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::RDONLY);

impl OpenDir {
    /// Removes from a directory what isn't a directory with entries.
    fn clear(directory: &OwnedFd, name: CString) -> rustix::io::Result<Self> {
        let mut left = Vec::new();
        for entry in Dir::read_from(directory)?.flatten() {
            let entry = entry.file_name();
            if entry == c"." || entry == c".." {
                continue;
            }
            let is_gone = unlinkat(directory, entry, AtFlags::empty()).is_ok()
                || unlinkat(directory, entry, AtFlags::REMOVEDIR).is_ok();
            if !is_gone {
                left.push(entry.to_owned());
            }
        }
        Ok(Self {
            name,
            identity: identity(directory)?,
            left,
        })
    }
}

fn identity(directory: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_listed_is_removed_too() {
        let outer = tempfile::tempdir().unwrap();
        let text = |text: String| CString::new(text).unwrap();
        let other = text("A=b".to_owned());
        let variable = text(format!("TMPDIR={}", outer.path().display()));
        let mut env = vec![variable, other.clone()];
        let found = PrivateTempDir::take_outer(&mut env);
        assert_eq!((&*found, env), (outer.path(), vec![other]));
        let directory = PrivateTempDir::create(&found).unwrap();
        let closed = directory.path().join("a/closed");
        fs::create_dir_all(closed.join("b")).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        TempDirRemover::start().unwrap().remove(directory);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
    /// Deeper than descriptors may be open, with paths that are longer than the system takes.
    #[test]
    fn a_deep_tree_is_removed() {
        let outer = tempfile::tempdir().unwrap();
        let directory = PrivateTempDir::create(outer.path()).unwrap();
        let mut current = openat(CWD, directory.path(), DIRECTORY_FLAGS, Mode::empty()).unwrap();
        for _ in 0..5_000 {
            for name in [c"down", c"beside"] {
                rustix::fs::mkdirat(&current, name, Mode::RWXU).unwrap();
            }
            current = openat(&current, c"down", DIRECTORY_FLAGS, Mode::empty()).unwrap();
        }
        TempDirRemover::start().unwrap().remove(directory);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }

    /// Nothing outside of it is touched.
    #[test]
    fn what_links_lead_to_stays() {
        let outer = tempfile::tempdir().unwrap();
        let kept = outer.path().join("kept");
        fs::create_dir_all(kept.join("a")).unwrap();
        let directory = PrivateTempDir::create(outer.path()).unwrap();
        std::os::unix::fs::symlink(&kept, directory.path().join("link")).unwrap();
        TempDirRemover::start().unwrap().remove(directory);
        assert!(kept.join("a").is_dir());
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    }
}
