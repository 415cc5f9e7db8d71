//! Inputs that are paths stay inside the root: by their components first, then by what stands in the file system.
//!
//! Another program opens the path later, so this is no sandbox: who can swap a folder for a link in between gets past it.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::json::{Input, Json};
use crate::json_schema::pointer;
use crate::types::{Backing, Detail, Tool};

/// What a model reads of every path that is refused; a cause may follow.
const REFUSAL: &str = "Path must be within working directory";
/// Bytes that a path may have with its terminator: `PATH_MAX` of Linux.
const MAX_PATH: usize = 4_096;

/// The inputs named in `paths` that lead out of `root`, or of which that can't be told. Relative ones start where the
/// tool's program runs. What doesn't exist yet is inside if its nearest existing folder is.
pub(crate) fn outside(tool: &Tool, input: &Input, root: &Path) -> Vec<Detail> {
    if tool.paths.is_empty() {
        return Vec::new();
    }
    let Ok(real) = root.canonicalize() else {
        let message = format!("{REFUSAL} (which can't be read)");
        return vec![Detail {
            path: String::new(),
            message,
        }];
    };
    let start = match &tool.backing {
        Some(Backing::Command(command)) => &command.cwd,
        _ => root,
    };
    let bounds = Bounds { root, real, start };
    let mut found = Vec::new();
    for path in &tool.paths {
        for (place, value) in values(input, path) {
            let refused = value.map_or(Err("it is no string"), |value| bounds.hold(&value));
            found.extend(refused.err().map(|cause| Detail {
                path: place,
                message: if cause.is_empty() {
                    REFUSAL.to_owned()
                } else {
                    format!("{REFUSAL} ({cause})")
                },
            }));
        }
    }
    found
}

/// The strings at `path`: one, or those of an array, each with its pointer; none in the place of what is no string.
fn values(input: &Input, path: &[String]) -> Vec<(String, Option<String>)> {
    let Some(raw) = input.at(path).filter(|raw| raw.get() != "null") else {
        return Vec::new();
    };
    let here = pointer(path);
    let string = |value: Json<'_>| value.text().map(std::borrow::Cow::into_owned);
    let value = Json::from(raw);
    let Some(items) = value.list() else {
        return vec![(here, string(value))];
    };
    let items = items.into_iter().enumerate();
    items
        .map(|(index, item)| (format!("{here}/{index}"), string(item)))
        .collect()
}

/// The folder that paths stay in.
struct Bounds<'a> {
    /// As declared.
    root: &'a Path,
    /// Without links.
    real: PathBuf,
    /// Where relative paths start.
    start: &'a Path,
}

impl Bounds<'_> {
    /// Whether `path` stays inside.
    ///
    /// # Errors
    /// Why it doesn't, or can't be told; empty where it leads out plainly.
    fn hold(&self, path: &str) -> Result<(), &'static str> {
        match path {
            "" => return Err("it is empty"),
            _ if path.contains('\0') => return Err("it holds a NUL character"),
            _ if path.len() >= MAX_PATH => return Err("it is longer than 4,095 bytes"),
            _ if path.starts_with('~') => {
                return Err("`~` is not expanded; write `./~` for a file of that name");
            }
            _ => {}
        }
        let path = Path::new(path);
        if path.is_relative() {
            let start = self
                .start
                .canonicalize()
                .map_err(|_| "the working directory can't be read")?;
            return self.walk(start, path);
        }
        let below = [self.root, &self.real]
            .into_iter()
            .find_map(|root| path.strip_prefix(root).ok());
        self.walk(self.real.clone(), below.ok_or("")?)
    }

    /// Goes down from `place`, a folder without links; no step may leave the root.
    fn walk(&self, mut place: PathBuf, path: &Path) -> Result<(), &'static str> {
        let mut exists = true;
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if exists => {
                    place.pop();
                }
                Component::ParentDir => return Err("`..` after a folder that doesn't exist"),
                Component::Normal(name) => {
                    place.push(name);
                    if exists {
                        exists = resolve(&mut place)?;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(""),
            }
            if !place.starts_with(&self.real) {
                return Err("");
            }
        }
        Ok(())
    }
}

/// Follows `place` if it is a link; false where nothing is there.
fn resolve(place: &mut PathBuf) -> Result<bool, &'static str> {
    match place.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            *place = place
                .canonicalize()
                .map_err(|_| "a link on the way leads nowhere")?;
            Ok(true)
        }
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(_) => Err("a folder on the way can't be read"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// FAULTS 80–82.
    #[test]
    fn a_path_stays_inside() {
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
        let bounds = Bounds {
            root: &root,
            real: root.canonicalize().unwrap(),
            start: &root,
        };
        let absolute = |below: &str| root.join(below).to_string_lossy().into_owned();
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
            assert_eq!(bounds.hold(path), Ok(()), "{path}");
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
            assert!(bounds.hold(path).is_err(), "{path}");
        }
    }
}
