//! Confines what programs can write: they find a copy of a directory at the directory's own path, and private temporary
//! directories. Everything else is read-only, and there is no network.
//!
//! A supervisor confines itself before it forks its first reaper, so this holds for every program that its reapers
//! start. The host isn't confined. Where the system allows no mounts, programs find the copy at its own path, and can
//! write nothing else.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_bind, mount_change, move_mount,
    open_tree,
};
use rustix::process::{getegid, geteuid};

use crate::landlock::{self, Strictness};
use crate::namespaces;
use crate::parent_pins::ParentPins;
use crate::privileges::drop_privileges;
use crate::proc_tree;
use crate::reexec::{CHECK_ARGUMENT, CONFINE_ARGUMENT, SUPERVISE_ARGUMENT};
use crate::system_call_filter::{AllowedSockets, restrict_system_calls};
use crate::unix_sockets::socket_files;

/// How the argument begins that tells a supervisor about its confinement.
const MOUNTED: &str = "mounted";
const UNMOUNTED: &str = "unmounted";

/// What programs can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyConfinement {
    /// The directory whose place the copy takes.
    pub root: PathBuf,
    /// The copy.
    pub copy: PathBuf,
    /// A directory in which the private temporary directories are created.
    pub scratch: PathBuf,
    /// The temporary directories that become private, each empty at first. Those that don't exist are left out.
    pub temp_dirs: Vec<PathBuf>,
    /// Whether programs find the copy at the path of `root`. If not, they find it at its own path, and share the
    /// temporary directories, which they can't write, and the network with everyone.
    pub is_mounted: bool,
}

impl CopyConfinement {
    /// Checks that the system allows this confinement, by starting `program`, the host's own executable, under it.
    ///
    /// # Errors
    /// The cause, as the system reports it: most often, that it doesn't allow user namespaces.
    pub fn check(&self, program: &Path) -> io::Result<()> {
        if !proc_tree::shows_own_pid_namespace() {
            return Err(io::Error::other("/proc is missing, or another namespace's"));
        }
        let output = Command::new(program)
            .arg(SUPERVISE_ARGUMENT)
            .args(self.to_arguments())
            .arg(CHECK_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(message.trim().to_owned()))
    }

    /// Returns the command-line arguments that describe the confinement to a supervisor.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let paths = [&self.root, &self.copy, &self.scratch].into_iter();
        let paths = paths
            .chain(&self.temp_dirs)
            .map(|path| path.clone().into_os_string());
        let count = self.temp_dirs.len().to_string();
        let kind = if self.is_mounted { MOUNTED } else { UNMOUNTED };
        [OsString::from(CONFINE_ARGUMENT), kind.into(), count.into()]
            .into_iter()
            .chain(paths)
            .collect()
    }

    /// Parses what follows [`CONFINE_ARGUMENT`].
    pub(crate) fn from_arguments<'a>(
        arguments: &mut impl Iterator<Item = &'a OsString>,
    ) -> Option<Self> {
        let is_mounted = match arguments.next()?.to_str()? {
            MOUNTED => true,
            UNMOUNTED => false,
            _ => return None,
        };
        let count: usize = arguments.next()?.to_str()?.parse().ok()?;
        let mut path = || arguments.next().map(PathBuf::from);
        let (root, copy, scratch) = (path()?, path()?, path()?);
        let temp_dirs = (0..count).map(|_| path()).collect::<Option<_>>()?;
        Some(Self {
            root,
            copy,
            scratch,
            temp_dirs,
            is_mounted,
        })
    }

    /// Confines this process, which must have a single thread, and everything that it starts from now on.
    ///
    /// # Errors
    /// The system doesn't allow it. The process may be confined in part, and must exit.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if self.is_mounted {
            return self.enter_mounts();
        }
        drop_privileges()?;
        let writable = [self.copy.clone(), self.scratch.clone()];
        landlock::restrict(&writable, Strictness::Alone)?;
        restrict_system_calls(AllowedSockets::Kernel)
    }

    fn enter_mounts(&self) -> io::Result<()> {
        // Sockets can be connected to even on a read-only mount, and the processes that listen on them (a container
        // engine, a desktop) aren't confined.
        let sockets = socket_files();
        enter_namespaces()?;
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        // These are detached from the tree while everything in it becomes read-only.
        let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let copy_identity = identity(&self.copy)?;
        let copy = clone_mount(&self.copy)?;
        let temp_dirs = self.private_temp_dirs()?;
        namespaces::make_mounts_read_only(c"/")?;
        let mut pins = ParentPins::default();
        for (directory, private) in &temp_dirs {
            // A directory inside an earlier one has to be created there.
            if fs::create_dir_all(directory).is_ok() {
                pins.pin_parents(directory)?;
                attach_mount(private, directory)?;
                pins.private_dirs.push(directory);
            }
        }
        fs::create_dir_all(&self.root)?;
        pins.pin_parents(&self.root)?;
        attach_mount(&copy, &self.root)?;
        for socket in sockets {
            // A socket that can't be hidden is unreachable anyway, because one of its parent directories is
            // inaccessible or private.
            let _ = mount_bind("/dev/null", socket);
        }
        // Programs that talk to themselves need no other interface. Without it they fail, and that is reported.
        let _ = namespaces::enable_loopback();
        drop_privileges()?;
        let mut writable = vec![self.root.clone()];
        writable.extend(
            pins.private_dirs
                .iter()
                .map(|directory| directory.to_path_buf()),
        );
        // An old kernel has no Landlock, and some kernels have no filters. The mounts protect the files of this machine
        // without either.
        let _ = landlock::restrict(&writable, Strictness::BesideMounts);
        let _ = restrict_system_calls(AllowedSockets::Namespaced);
        let outside = statvfs("/")?.f_flag.contains(StatVfsMountFlags::RDONLY);
        let inside = statvfs(&self.root)?
            .f_flag
            .contains(StatVfsMountFlags::RDONLY);
        if !outside || inside || identity(&self.root)? != copy_identity {
            return Err(io::Error::other("the mounts didn't take effect"));
        }
        Ok(())
    }

    /// Creates the private temporary directories. Returns each with the directory whose place it takes.
    fn private_temp_dirs(&self) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
        let mut private = Vec::new();
        for (number, directory) in self.temp_dirs.iter().enumerate() {
            if !directory.is_dir() || directory.starts_with(&self.root) {
                continue;
            }
            let scratch = self.scratch.join(number.to_string());
            fs::create_dir_all(&scratch)?;
            fs::set_permissions(&scratch, Permissions::from_mode(0o1777))?;
            private.push((directory.clone(), clone_mount(&scratch)?));
        }
        Ok(private)
    }
}

/// Gives this process namespaces of its own. The superuser keeps its identity; any other user needs a user namespace.
fn enter_namespaces() -> io::Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    if uid.is_root() && namespaces::unshare(namespaces::CONFINED_NAMESPACES).is_ok() {
        return Ok(());
    }
    namespaces::unshare(libc::CLONE_NEWUSER | namespaces::CONFINED_NAMESPACES)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn clone_mount(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(CWD, directory, flags)?)
}

fn attach_mount(mount: &OwnedFd, directory: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(mount, "", CWD, directory, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_way_to_the_supervisor() {
        let confinement = CopyConfinement {
            root: "/a b".into(),
            copy: "/c".into(),
            scratch: "/d".into(),
            temp_dirs: vec!["/tmp".into(), "/var/tmp".into()],
            is_mounted: true,
        };
        let arguments = confinement.to_arguments();
        let mut arguments = arguments.iter();
        assert_eq!(arguments.next().unwrap(), CONFINE_ARGUMENT);
        let parsed = CopyConfinement::from_arguments(&mut arguments);
        assert_eq!(parsed, Some(confinement));
        assert_eq!(arguments.next(), None);
        let incomplete: Vec<OsString> = ["mounted", "2", "/a", "/b", "/c", "/tmp"]
            .map(Into::into)
            .into();
        assert_eq!(
            CopyConfinement::from_arguments(&mut incomplete.iter()),
            None
        );
    }
}
