//! Finds the recordings that paths and globs name.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

use globset::{GlobBuilder, GlobMatcher};

use crate::output::CommandError;

/// The extensions of recordings in directories.
const RECORDING_EXTENSIONS: [&str; 4] = ["json", "jsonl", "ndjson", "traj"];

/// Part K of N of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `count`.
    number: NonZeroUsize,
    count: NonZeroUsize,
}

impl FromStr for Shard {
    type Err = &'static str;

    /// Parses `K/N`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((number, count)) if number <= count => Ok(Self { number, count }),
            _ => Err("must be `K/N` with K from 1 to N, for example `2/8`"),
        }
    }
}

impl Shard {
    /// Returns the items of a sorted list that belong to this shard.
    pub fn select<T>(self, list: Vec<T>) -> Vec<T> {
        let mine = list.into_iter().skip(self.number.get() - 1);
        mine.step_by(self.count.get()).collect()
    }
}

/// Returns the recordings that `paths` name, sorted and without duplicates. Files are taken as is, directories are searched
/// recursively for files with a recording's extension, and a path that doesn't exist can be a glob. Hidden files and
/// symlinks to directories are skipped in directories. `-` means stdin and is kept.
///
/// # Errors
/// A path can't be read, a glob is invalid, or a directory or glob has no recordings.
pub fn find_recordings(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = BTreeSet::new();
    for path in paths {
        if add_recordings(path, &mut found)? == 0 {
            let message = format!("no recordings found at {}", path.display());
            return Err(CommandError::usage(message).with_hint(
                "in a directory, only files ending in .json, .jsonl, .ndjson, or .traj are read",
            ));
        }
    }
    Ok(found.into_iter().collect())
}

/// Adds the recordings that a path names to `found`, and returns their number.
fn add_recordings(path: &Path, found: &mut BTreeSet<PathBuf>) -> Result<usize, CommandError> {
    let metadata = match fs::metadata(path) {
        _ if path == Path::new("-") => None,
        Ok(metadata) => Some(metadata),
        Err(source) => {
            let glob = RecordingGlob::parse(path)?;
            let glob = glob.ok_or_else(|| unreadable(path, &source))?;
            return collect_files(&glob.dir, glob.depth, found, &|path| {
                glob.matcher.is_match(path)
            });
        }
    };
    if metadata.is_some_and(|metadata| metadata.is_dir()) {
        return collect_files(path, usize::MAX, found, &is_recording);
    }
    found.insert(path.to_owned());
    Ok(1)
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    let message = format!("{} can't be read: {error}", path.display());
    CommandError::usage(message).with_hint("name a file, a directory, or a quoted glob")
}

fn is_recording(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| RECORDING_EXTENSIONS.contains(&extension))
}

/// Adds the wanted files below `dir`, down to `depth` levels, to `found`, and returns their number.
fn collect_files(
    dir: &Path,
    depth: usize,
    found: &mut BTreeSet<PathBuf>,
    is_wanted: &dyn Fn(&Path) -> bool,
) -> Result<usize, CommandError> {
    let unreadable = |error| unreadable(dir, &error);
    let read_path = if dir == Path::new("") {
        Path::new(".")
    } else {
        dir
    };
    let mut count = 0;
    for entry in fs::read_dir(read_path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = dir.join(entry.file_name());
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            if depth > 1 {
                count += collect_files(&path, depth - 1, found, is_wanted)?;
            }
        } else if is_wanted(&path) && (kind.is_file() || path.is_file()) {
            count += 1;
            found.insert(path);
        }
    }
    Ok(count)
}

/// A path with wildcards.
struct RecordingGlob {
    /// The directory above the first wildcard.
    dir: PathBuf,
    /// How many levels below `dir` a match can be. Other directories need not be readable.
    depth: usize,
    matcher: GlobMatcher,
}

impl RecordingGlob {
    /// Parses a path as a glob. Returns `None` without a wildcard.
    fn parse(path: &Path) -> Result<Option<Self>, CommandError> {
        let has_wildcard = |part: &str| part.contains(['*', '?', '[', '{']);
        let names_directories = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        // Without `.` within it, as the paths that are found.
        let mut path: PathBuf = path.components().collect();
        if names_directories {
            // Keeps the slash, so that no file matches.
            path.push("");
        }
        let Some(text) = path.to_str().filter(|text| has_wildcard(text)) else {
            return Ok(None);
        };
        let dir: PathBuf = path
            .components()
            .take_while(|part| {
                part.as_os_str()
                    .to_str()
                    .is_some_and(|part| !has_wildcard(part))
            })
            .collect();
        let depth = if text.contains("**") {
            usize::MAX
        } else {
            path.components().count() - dir.components().count()
        };
        let built = GlobBuilder::new(text).literal_separator(true).build();
        let glob = built.map_err(|error| {
            let message = format!("`{text}` isn't a valid glob: {}", error.kind());
            CommandError::usage(message)
                .with_hint("`**` matches any directories, `*` any name, `{a,b}` either of two")
        })?;
        Ok(Some(Self {
            dir,
            depth,
            matcher: glob.compile_matcher(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn shards_partition_a_list() {
        let list: Vec<usize> = (0..23).collect();
        for count in 1..30 {
            let mut all: Vec<usize> = (1..=count)
                .flat_map(|number| {
                    format!("{number}/{count}")
                        .parse::<Shard>()
                        .unwrap()
                        .select(list.clone())
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, list, "{count}");
        }
        for wrong in ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn directories_files_and_globs_name_recordings() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        for name in [
            "z.json",
            "a/y.jsonl",
            "a/b/x.json",
            "a/notes.txt",
            "a/.hidden.json",
        ] {
            fs::write(at(name), "").unwrap();
        }
        let names = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| at(path)).collect();
            find_recordings(&paths).map(|found| {
                let name =
                    |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
                found.iter().map(name).collect::<Vec<String>>()
            })
        };
        assert_eq!(names(&[""]).unwrap(), ["a/b/x.json", "a/y.jsonl", "z.json"]);
        assert_eq!(names(&["z.json", "a", "a/y.jsonl"]).unwrap().len(), 3);
        assert_eq!(names(&["a/notes.txt"]).unwrap(), ["a/notes.txt"]);
        assert_eq!(names(&["*.json"]).unwrap(), ["z.json"]);
        assert_eq!(names(&["**/*.{json,jsonl}"]).unwrap().len(), 3);
        for wrong in ["nowhere", "*.traj", "[", "a/b/*.jsonl", "a/b/*/"] {
            assert!(names(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_existing_file_need_not_be_a_valid_glob() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("run[1.json");
        fs::write(&path, "").unwrap();
        let found = find_recordings(std::slice::from_ref(&path)).unwrap();
        assert_eq!(found, [path]);
    }

    /// Another directory may be unreadable.
    #[test]
    fn a_glob_opens_only_directories_that_a_match_can_be_in() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/deep/deeper")).unwrap();
        for name in [
            "x.json",
            "a/y.json",
            "a/deep/z.json",
            "a/deep/deeper/w.json",
        ] {
            fs::write(at(name), "").unwrap();
        }
        let visited = |glob: &str| {
            let glob = RecordingGlob::parse(&at(glob)).unwrap().unwrap();
            let visited = RefCell::new(BTreeSet::new());
            collect_files(&glob.dir, glob.depth, &mut BTreeSet::new(), &|path| {
                let path = path.strip_prefix(dir.path()).unwrap();
                visited.borrow_mut().insert(path.display().to_string());
                false
            })
            .unwrap();
            visited.into_inner().into_iter().collect::<Vec<String>>()
        };
        assert_eq!(visited("*.json"), ["x.json"]);
        assert_eq!(visited("*/*.json"), ["a/y.json", "x.json"]);
        assert_eq!(visited("a/{y,deep/z}.json"), ["a/deep/z.json", "a/y.json"]);
        assert_eq!(visited("**/w.json").len(), 4);
    }

    #[test]
    fn a_dot_within_a_glob_changes_nothing() {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/x.json"), "").unwrap();
        let found = find_recordings(&[dir.path().join("a/./*.json")]).unwrap();
        assert_eq!(found, [dir.path().join("a/x.json")]);
    }
}
