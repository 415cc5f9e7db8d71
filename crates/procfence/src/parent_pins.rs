//! Keeps directories in place that lead to a mount.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::mount_bind;

/// Directories that lead to a mount inside of a private directory, where programs could rename them. Then
/// the mount would be gone from its path, and the host would find something else there.
#[derive(Default)]
pub(crate) struct ParentPins<'a> {
    /// Directories in which programs can rename what they find.
    pub(crate) private_dirs: Vec<&'a Path>,
    pinned: BTreeSet<PathBuf>,
}

impl ParentPins<'_> {
    /// Makes each parent of `directory` within a private directory a mount, which can't be renamed.
    ///
    /// # Errors
    /// A parent can't be mounted.
    pub(crate) fn pin_parents(&mut self, directory: &Path) -> io::Result<()> {
        let mut parents: Vec<&Path> = directory.ancestors().skip(1).collect();
        parents.reverse();
        for parent in parents {
            let is_inside = |private: &&Path| parent.starts_with(private) && parent != *private;
            if self.private_dirs.iter().any(is_inside) && self.pinned.insert(parent.to_owned()) {
                mount_bind(parent, parent)?;
            }
        }
        Ok(())
    }
}
