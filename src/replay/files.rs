//! Paths and globs → the recordings that they name, sorted, each once.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use thiserror::Error;

/// The ends of names by which recordings are found in folders.
const ENDS: [&str; 4] = ["json", "jsonl", "ndjson", "traj"];

/// Why there is no list of recordings.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A path leads nowhere.
    #[error("{} can't be read: {source}", path.display())]
    Unreadable {
        /// As it was named, or found.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A glob is none.
    #[error("`{glob}` is no glob: {message}")]
    NoGlob {
        /// As it was named.
        glob: String,
        /// What is wrong with it.
        message: String,
    },
    /// A folder or a glob names no recording.
    #[error("{} names no recording", path.display())]
    Empty {
        /// As it was named.
        path: PathBuf,
    },
}

/// Every K-th of N parts of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `of`.
    number: NonZeroUsize,
    of: NonZeroUsize,
}

impl FromStr for Shard {
    type Err = &'static str;

    /// Reads `K/N`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if number <= of => Ok(Self { number, of }),
            _ => Err("it is `K/N`, K from 1 to N: the second of eight is `2/8`"),
        }
    }
}

impl Shard {
    /// Those of a sorted list that belong to this shard.
    pub fn of<T>(self, list: Vec<T>) -> Vec<T> {
        let mine = list.into_iter().skip(self.number.get() - 1);
        mine.step_by(self.of.get()).collect()
    }
}

/// The recordings that `paths` name: files as they are, those of folders by the ends of their names, globs where no
/// file has the name. Hidden files, and folders behind links, are left out. `-` stays what it is.
///
/// # Errors
/// A path, folder or glob that names no recording.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FilesError> {
    let mut found = BTreeSet::new();
    for path in paths {
        let named = match (fs::metadata(path), glob(path)?) {
            _ if path == Path::new("-") => {
                found.insert(path.clone());
                1
            }
            (Ok(metadata), _) if metadata.is_dir() => below(path, &mut found, &is_recording)?,
            (Ok(_), _) => {
                found.insert(path.clone());
                1
            }
            (Err(_), Some((folder, glob))) => {
                below(&folder, &mut found, &|path| glob.is_match(path))?
            }
            (Err(source), None) => {
                let path = path.clone();
                return Err(FilesError::Unreadable { path, source });
            }
        };
        if named == 0 {
            return Err(FilesError::Empty { path: path.clone() });
        }
    }
    Ok(found.into_iter().collect())
}

fn is_recording(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ENDS.contains(&end))
}

/// Adds the files below `folder` that are wanted; how many there are.
fn below(
    folder: &Path,
    found: &mut BTreeSet<PathBuf>,
    is_wanted: &dyn Fn(&Path) -> bool,
) -> Result<usize, FilesError> {
    let unreadable = |source| FilesError::Unreadable {
        path: folder.to_owned(),
        source,
    };
    let here = if folder == Path::new("") {
        Path::new(".")
    } else {
        folder
    };
    let mut named = 0;
    for entry in fs::read_dir(here).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = folder.join(entry.file_name());
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            named += below(&path, found, is_wanted)?;
        } else if is_wanted(&path) && (kind.is_file() || path.is_file()) {
            named += 1;
            found.insert(path);
        }
    }
    Ok(named)
}

/// The glob that a path is, and the folder above its first wildcard; none where it has none.
fn glob(path: &Path) -> Result<Option<(PathBuf, GlobMatcher)>, FilesError> {
    let Some(text) = path
        .to_str()
        .filter(|text| text.contains(['*', '?', '[', '{']))
    else {
        return Ok(None);
    };
    let plain = |part: &std::ffi::OsStr| {
        !part
            .as_encoded_bytes()
            .iter()
            .any(|byte| b"*?[{".contains(byte))
    };
    let folder = path
        .components()
        .take_while(|part| plain(part.as_os_str()))
        .collect();
    let built = GlobBuilder::new(text).literal_separator(true).build();
    let glob = built.map_err(|error| FilesError::NoGlob {
        glob: text.to_owned(),
        message: error.kind().to_string(),
    })?;
    Ok(Some((folder, glob.compile_matcher())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_part_a_list() {
        let list: Vec<usize> = (0..23).collect();
        for of in 1..30 {
            let mut all: Vec<usize> = (1..=of)
                .flat_map(|number| {
                    format!("{number}/{of}")
                        .parse::<Shard>()
                        .unwrap()
                        .of(list.clone())
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, list, "{of}");
        }
        for wrong in ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn folders_files_and_globs_name_recordings() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
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
            files(&paths).map(|found| {
                let name = |path: &PathBuf| {
                    path.strip_prefix(folder.path())
                        .unwrap()
                        .display()
                        .to_string()
                };
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
