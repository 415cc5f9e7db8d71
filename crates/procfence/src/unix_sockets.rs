//! Finds the Unix sockets of this machine in the file system.
//!
//! The kernel lists each socket by the name that it was bound to, and only those of one network namespace. A socket may
//! have got another name since (an SSH master connection is bound to a temporary one), and a name may be relative to the
//! working directory or root of a process. So all sockets count that lie in a directory where one of these names leads.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The columns of `/proc/net/unix` before the name.
const COLUMNS_BEFORE_NAME: usize = 7;

/// Returns the paths of the Unix sockets of this machine, as far as this user can find them.
pub(crate) fn socket_files() -> BTreeSet<PathBuf> {
    let processes = ProcessView::of_all_processes();
    let mut sockets = BTreeSet::new();
    let mut directories = BTreeSet::new();
    for name in &processes.names {
        for path in processes.places_of(Path::new(OsStr::from_bytes(name))) {
            directories.extend(path.parent().map(Path::to_owned));
            // Its directory may be one that can't be listed.
            if path.symlink_metadata().is_ok() {
                sockets.insert(path);
            }
        }
    }
    for directory in directories {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
        sockets.extend(entries.filter(is_socket).map(|entry| entry.path()));
    }
    sockets
}

/// What the processes of this machine show about sockets.
#[derive(Default)]
struct ProcessView {
    /// The names of the sockets in all network namespaces.
    names: BTreeSet<Vec<u8>>,
    /// The working directories.
    working_dirs: BTreeSet<PathBuf>,
    /// The root directories.
    roots: BTreeSet<PathBuf>,
}

impl ProcessView {
    fn of_all_processes() -> Self {
        let mut view = Self::default();
        view.roots.insert(PathBuf::from("/"));
        let mut seen_tables = HashSet::new();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in processes.map(|entry| entry.path()) {
            // Processes of one network namespace share a table, and so its inode.
            let table = process.join("net/unix");
            if fs::metadata(&table).is_ok_and(|found| seen_tables.insert(found.ino())) {
                let table = fs::read(table).unwrap_or_default();
                let names = table.split(|byte| *byte == b'\n').filter_map(bound_name);
                view.names.extend(names.map(<[u8]>::to_owned));
            }
            view.working_dirs
                .extend(fs::read_link(process.join("cwd")).ok());
            view.roots.extend(fs::read_link(process.join("root")).ok());
        }
        view
    }

    /// Returns where the socket with this name may be.
    fn places_of<'a>(&'a self, name: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        let (bases, below) = match name.strip_prefix("/") {
            Ok(below) => (&self.roots, below),
            Err(_) => (&self.working_dirs, name),
        };
        bases.iter().map(move |base| base.join(below))
    }
}

/// Returns the name in a line of `/proc/net/unix`, unless it isn't one in the file system.
fn bound_name(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..COLUMNS_BEFORE_NAME {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace)?;
        rest = rest.get(end..)?;
    }
    let name = rest.strip_prefix(b" ")?;
    let is_in_files = name.first().is_some_and(|first| *first != b'@') && name != b"Path";
    is_in_files.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_spaces_and_any_bytes() {
        let name = |line: &'static [u8]| bound_name(line);
        let columns = b"0000000000000000: 00000002 00000000 00010000 0001 01";
        let line = |rest: &[u8]| [columns, rest].concat();
        assert_eq!(
            bound_name(&line(b" 645334 /run/a b")),
            Some(&b"/run/a b"[..])
        );
        assert_eq!(bound_name(&line(b"    12 \xe9")), Some(&b"\xe9"[..]));
        assert_eq!(bound_name(&line(b" 645334")), None);
        assert_eq!(bound_name(&line(b" 645334 @abstract")), None);
        assert_eq!(
            name(b"Num       RefCount Protocol Flags    Type St Inode Path"),
            None
        );
        assert_eq!(name(b""), None);
    }

    #[test]
    fn a_name_leads_to_a_place_below_each_root_or_working_directory() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        let view = ProcessView {
            names: BTreeSet::new(),
            working_dirs: paths(&["/home/a"]),
            roots: paths(&["/", "/jail"]),
        };
        let places = |name: &str| view.places_of(Path::new(name)).collect::<BTreeSet<_>>();
        assert_eq!(places("/run/x"), paths(&["/jail/run/x", "/run/x"]));
        assert_eq!(places("./x"), paths(&["/home/a/x"]));
    }
}
