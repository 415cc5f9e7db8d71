//! Keeps a path inside the root. The kernel resolves it, where it can; else, a walk looks at each component and follows
//! the symlinks that exist in the file system.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

/// Maximum length of a path in bytes, including the terminator: `PATH_MAX` on Linux.
const MAX_PATH_BYTES: usize = 4_096;

/// Why a path is refused that has a `..` where nothing exists yet.
const AFTER_MISSING: &str = "`..` after a directory that doesn't exist";

/// The directory that paths must stay inside.
pub(crate) struct PathBounds<'a> {
    /// As declared.
    root: &'a Path,
    /// With symlinks resolved.
    canonical_root: PathBuf,
    /// Where relative paths start.
    base: &'a Path,
}

impl<'a> PathBounds<'a> {
    /// Creates the bounds of `root`. Relative paths start at `base`. Returns `None` if the root can't be read.
    pub(crate) fn new(root: &'a Path, base: &'a Path) -> Option<Self> {
        Some(Self {
            root,
            canonical_root: root.canonicalize().ok()?,
            base,
        })
    }

    /// Checks that `path` stays inside. A path that doesn't exist yet is inside if its nearest existing ancestor is.
    ///
    /// # Errors
    /// Why it doesn't, or why that can't be determined; empty if it simply leads outside.
    pub(crate) fn check_path(&self, path: &str) -> Result<(), &'static str> {
        match path {
            "" => return Err("it is empty"),
            _ if path.contains('\0') => return Err("it contains a NUL character"),
            _ if path.len() >= MAX_PATH_BYTES => return Err("it is longer than 4,095 bytes"),
            _ if path.starts_with('~') => {
                return Err("`~` isn't expanded; write `./~` for a file with that name");
            }
            _ => {}
        }
        let path = Path::new(path);
        if path.is_relative() {
            let base = self
                .base
                .canonicalize()
                .map_err(|_| "the working directory can't be read")?;
            return self.check_components(base, path);
        }
        let relative = [self.root, &self.canonical_root]
            .into_iter()
            .find_map(|root| path.strip_prefix(root).ok());
        self.check_components(self.canonical_root.clone(), relative.ok_or("")?)
    }

    /// Like [`Self::check_path`], but a path that leads nowhere is fine, because no program gets there.
    ///
    /// # Errors
    /// See [`Self::check_path`].
    pub(crate) fn check_guess(&self, path: &str) -> Result<(), &'static str> {
        if path.is_empty() || path.starts_with('~') {
            return Ok(());
        }
        match self.check_path(path) {
            Err(AFTER_MISSING) => Ok(()),
            verdict => verdict,
        }
    }

    /// Checks a path that starts at `base`, a directory without symlinks in its path.
    fn check_components(&self, base: PathBuf, path: &Path) -> Result<(), &'static str> {
        if self.resolves_beneath(&base, path) {
            return Ok(());
        }
        self.walk_components(base, path)
    }

    /// Whether the kernel resolves the path to something that exists, without leaving the root on the way. It does so in one
    /// step, so that nothing can be exchanged between two components. What it doesn't resolve may be inside all the same: a
    /// path that doesn't exist yet, or an absolute symlink.
    #[cfg(target_os = "linux")]
    fn resolves_beneath(&self, base: &Path, path: &Path) -> bool {
        let Ok(from_root) = base.strip_prefix(&self.canonical_root) else {
            return false;
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let path = Path::new(".").join(from_root).join(path);
        let root = open(&self.canonical_root, flags, Mode::empty());
        let opened = root.and_then(|root| openat2(root, path, flags, Mode::empty(), resolve));
        opened.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn resolves_beneath(&self, _base: &Path, _path: &Path) -> bool {
        false
    }

    /// Walks down from `current`; no step may leave the root.
    fn walk_components(&self, mut current: PathBuf, path: &Path) -> Result<(), &'static str> {
        let mut exists = true;
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir if exists => {
                    current.pop();
                }
                Component::ParentDir => return Err(AFTER_MISSING),
                Component::Normal(name) => {
                    current.push(name);
                    if exists {
                        exists = follow_link(&mut current)?;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(""),
            }
            if !current.starts_with(&self.canonical_root) {
                return Err("");
            }
        }
        Ok(())
    }
}

/// Resolves `path` if it is a symlink. Returns false if nothing exists there.
fn follow_link(path: &mut PathBuf) -> Result<bool, &'static str> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => {
            *path = path
                .canonicalize()
                .map_err(|_| "a symlink in the path can't be resolved")?;
            Ok(true)
        }
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(_) => Err("a directory in the path can't be read"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_outside_the_root_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (root, other) = (dir.path().join("app"), dir.path().join("app-secret"));
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(root.join("src/a.txt"), "").unwrap();
        symlink(&other, root.join("out")).unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink(other.join("later"), root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let bounds = PathBounds::new(&root, &root).unwrap();
        let absolute = |relative: &str| root.join(relative).to_string_lossy().into_owned();
        let long = "x".repeat(5_000);
        for path in [
            ".",
            "./",
            "src",
            "src/",
            "src/a.txt",
            "src/../src/a.txt",
            "new.txt",
            "new/deep/er.txt",
            "in/a.txt",
            "..a",
            "a..",
            "src/...",
            "./~",
            "in/../src",
            "src/a.txt/x",
            &absolute("src"),
            &absolute(""),
        ] {
            assert_eq!(bounds.check_path(path), Ok(()), "{path}");
        }
        for path in [
            "",
            "..",
            "../app-secret",
            "../app",
            "src/../../app",
            "../../etc/passwd",
            "/etc/passwd",
            "/",
            "//etc",
            "~",
            "~/x",
            "~root/x",
            "a\0b",
            &long,
            "out",
            "out/x",
            "out/../src",
            "in/deep/../../../x",
            "dangling",
            "dangling/x",
            "loop",
            "loop/x",
            "magic/etc",
            "new/../../x",
            "new/../src",
            &absolute("../app-secret/x"),
            &format!("{}-secret/x", root.display()),
        ] {
            assert!(bounds.check_path(path).is_err(), "{path}");
        }
    }

    /// The kernel never finds a path inside that the walk finds outside, and resolves what exists by itself.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_and_the_walk_agree() {
        let dir = tempfile::tempdir().unwrap();
        let (root, other) = (dir.path().join("app"), dir.path().join("other"));
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(root.join("src/a.txt"), "").unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink(root.join("src"), root.join("absolute")).unwrap();
        symlink(&other, root.join("out")).unwrap();
        symlink("../other", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let base = root.join("src");
        let bounds = PathBounds::new(&root, &base).unwrap();
        let base = base.canonicalize().unwrap();
        let system_resolves = bounds.resolves_beneath(&base, Path::new("."));
        for (path, by_kernel, by_walk) in [
            ("a.txt", true, true),
            ("deep/../a.txt", true, true),
            ("../in/deep", true, true),
            ("..", true, true),
            ("../absolute/a.txt", false, true),
            ("new.txt", false, true),
            ("a.txt/x", false, true),
            ("../..", false, false),
            ("../out", false, false),
            ("../up", false, false),
            ("../loop", false, false),
            ("../magic/etc", false, false),
            ("new/../a.txt", false, false),
        ] {
            let path = Path::new(path);
            let found = bounds.resolves_beneath(&base, path);
            assert_eq!(found, by_kernel && system_resolves, "{}", path.display());
            let walked = bounds.walk_components(base.clone(), path);
            assert_eq!(walked.is_ok(), by_walk, "{}", path.display());
        }
    }

    /// A refused path says why, so that the model can write another.
    #[test]
    fn a_path_that_no_system_accepts_is_refused_for_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let bounds = PathBounds::new(dir.path(), dir.path()).unwrap();
        let deep = "new/".repeat(MAX_PATH_BYTES / 4 - 1);
        for (path, why) in [
            ("", "it is empty"),
            ("a\0b", "it contains a NUL character"),
            (
                &*format!("{deep}{}", "x".repeat(MAX_PATH_BYTES - deep.len())),
                "it is longer than 4,095 bytes",
            ),
            (
                "~/x",
                "`~` isn't expanded; write `./~` for a file with that name",
            ),
            (&*"x".repeat(1_000), "a directory in the path can't be read"),
            ("new/../x", "`..` after a directory that doesn't exist"),
        ] {
            assert_eq!(bounds.check_path(path), Err(why), "{path}");
        }
        let longest = format!("{deep}{}", "x".repeat(MAX_PATH_BYTES - deep.len() - 1));
        assert_eq!(bounds.check_path(&longest), Ok(()));
    }

    /// Where a program may find a path, a text that it can't open is no danger.
    #[test]
    fn a_guess_is_refused_only_if_it_leads_somewhere_outside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("app");
        std::fs::create_dir_all(root.join("src")).unwrap();
        let bounds = PathBounds::new(&root, &root).unwrap();
        for (path, as_path, as_guess) in [
            ("", false, true),
            ("~", false, true),
            ("~/x", false, true),
            ("missing/../x", false, true),
            ("src/x", true, true),
            ("../x", false, false),
            ("/etc/passwd", false, false),
        ] {
            assert_eq!(bounds.check_path(path).is_ok(), as_path, "{path}");
            assert_eq!(bounds.check_guess(path).is_ok(), as_guess, "{path}");
        }
    }
}
