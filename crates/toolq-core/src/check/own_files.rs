//! Tells whether a path leads to one of toolq's own files: those that say what may run, and the log of what did.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the first of `files` that `path` leads to. Relative paths start at `base`. A file is known by its identity, so
/// links to it are found, too; one that doesn't exist yet, by its place. Everything in a directory belongs to it.
pub(crate) fn find_own_file<'f>(path: &str, base: &Path, files: &'f [PathBuf]) -> Option<&'f Path> {
    if files.is_empty() || path.is_empty() {
        return None;
    }
    let target = base.join(path);
    let is_same = |file: &&PathBuf| {
        have_same_identity(&target, file)
            || match (resolve_place(&target), resolve_place(file)) {
                (Some(target), Some(file)) => target.starts_with(file),
                _ => false,
            }
    };
    files.iter().find(is_same).map(PathBuf::as_path)
}

/// Whether both paths lead to the same file, possibly through links.
fn have_same_identity(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Returns where a path leads, without links. Its last components may be missing.
fn resolve_place(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut missing = Vec::new();
    let mut existing = &*path;
    loop {
        if let Ok(mut place) = existing.canonicalize() {
            place.extend(missing.iter().rev());
            return Some(place);
        }
        missing.push(existing.file_name()?);
        existing = existing.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_found_behind_any_link() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        for name in ["tools.yaml", "other.yaml"] {
            fs::write(base.join(name), "").unwrap();
        }
        fs::create_dir_all(base.join("log.jsonl.d")).unwrap();
        fs::create_dir(base.join("sub")).unwrap();
        symlink("tools.yaml", base.join("soft")).unwrap();
        fs::hard_link(base.join("tools.yaml"), base.join("hard")).unwrap();
        symlink("..", base.join("sub/up")).unwrap();
        symlink("tools.lock", base.join("dangling")).unwrap();
        let files: Vec<PathBuf> = ["tools.yaml", "tools.lock", "log.jsonl", "log.jsonl.d"]
            .map(|name| base.join(name))
            .into();
        let absolute = base.join("tools.yaml").to_string_lossy().into_owned();
        for (path, expected) in [
            ("tools.yaml", Some("tools.yaml")),
            ("./sub/../tools.yaml", Some("tools.yaml")),
            ("soft", Some("tools.yaml")),
            ("hard", Some("tools.yaml")),
            ("sub/up/tools.yaml", Some("tools.yaml")),
            (&absolute, Some("tools.yaml")),
            ("tools.lock", Some("tools.lock")),
            ("sub/up/tools.lock", Some("tools.lock")),
            ("log.jsonl.d/abc", Some("log.jsonl.d")),
            ("log.jsonl", Some("log.jsonl")),
            ("other.yaml", None),
            ("tools.yaml.bak", None),
            ("sub/tools.yaml", None),
            (".", None),
            ("", None),
        ] {
            let found = find_own_file(path, base, &files);
            assert_eq!(
                found,
                expected.map(|name| base.join(name)).as_deref(),
                "{path}"
            );
        }
    }
}
