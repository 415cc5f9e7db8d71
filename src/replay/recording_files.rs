//! Finds the recordings that paths and globs name.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use thiserror::Error;

/// The extensions of recordings in directories.
const RECORDING_EXTENSIONS: [&str; 4] = ["json", "jsonl", "ndjson", "traj"];

/// Why recordings couldn't be listed.
#[derive(Debug, Error)]
pub enum FindRecordingsError {
    /// A path doesn't exist or can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Unreadable {
        /// The path, as given or found.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A glob is invalid.
    #[error("`{glob}` isn't a valid glob: {message}")]
    InvalidGlob {
        /// The glob, as given.
        glob: String,
        /// What is wrong with it.
        message: String,
    },
    /// A directory or a glob has no recordings.
    #[error("no recordings found at {}", path.display())]
    Empty {
        /// The path, as given.
        path: PathBuf,
    },
}

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
pub fn find_recordings(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FindRecordingsError> {
    let mut found = BTreeSet::new();
    for path in paths {
        let match_count = match (fs::metadata(path), parse_glob(path)?) {
            _ if path == Path::new("-") => {
                found.insert(path.clone());
                1
            }
            (Ok(metadata), _) if metadata.is_dir() => {
                collect_files(path, &mut found, &is_recording)?
            }
            (Ok(_), _) => {
                found.insert(path.clone());
                1
            }
            (Err(_), Some((dir, glob))) => {
                collect_files(&dir, &mut found, &|path| glob.is_match(path))?
            }
            (Err(source), None) => {
                let path = path.clone();
                return Err(FindRecordingsError::Unreadable { path, source });
            }
        };
        if match_count == 0 {
            return Err(FindRecordingsError::Empty { path: path.clone() });
        }
    }
    Ok(found.into_iter().collect())
}

fn is_recording(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| RECORDING_EXTENSIONS.contains(&extension))
}

/// Adds the wanted files below `dir` to `found`, and returns their number.
fn collect_files(
    dir: &Path,
    found: &mut BTreeSet<PathBuf>,
    is_wanted: &dyn Fn(&Path) -> bool,
) -> Result<usize, FindRecordingsError> {
    let unreadable = |source| FindRecordingsError::Unreadable {
        path: dir.to_owned(),
        source,
    };
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
            count += collect_files(&path, found, is_wanted)?;
        } else if is_wanted(&path) && (kind.is_file() || path.is_file()) {
            count += 1;
            found.insert(path);
        }
    }
    Ok(count)
}

/// Parses a path as a glob. Returns the directory above its first wildcard and the glob, or `None` without a wildcard.
fn parse_glob(path: &Path) -> Result<Option<(PathBuf, GlobMatcher)>, FindRecordingsError> {
    let Some(text) = path
        .to_str()
        .filter(|text| text.contains(['*', '?', '[', '{']))
    else {
        return Ok(None);
    };
    let is_plain = |part: &std::ffi::OsStr| {
        !part
            .as_encoded_bytes()
            .iter()
            .any(|byte| b"*?[{".contains(byte))
    };
    let dir = path
        .components()
        .take_while(|part| is_plain(part.as_os_str()))
        .collect();
    let built = GlobBuilder::new(text).literal_separator(true).build();
    let glob = built.map_err(|error| FindRecordingsError::InvalidGlob {
        glob: text.to_owned(),
        message: error.kind().to_string(),
    })?;
    Ok(Some((dir, glob.compile_matcher())))
}

#[cfg(test)]
mod tests {
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
        let dir = tempfile::TempDir::new().unwrap();
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
        for wrong in ["nowhere", "*.traj", "[", "a/b/*.jsonl"] {
            assert!(names(&[wrong]).is_err(), "{wrong}");
        }
    }
}
