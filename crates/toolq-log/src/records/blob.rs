use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::open::folder_of;
use crate::read::Flaw;
use crate::records::line::sha256;

/// How a body begins that stands in a file. What somebody else wrote and begins so stands in a file, too.
pub(crate) const NAMES_FILE: &str = r#"{"$file""#;

/// The content of a record: JSON in the record itself, or in a file of the log's folder.
#[derive(Debug, Clone)]
pub enum Body<'l> {
    /// It stands in the record.
    Inline(Cow<'l, RawValue>),
    /// It was too large for a record.
    Stored(Stored),
}

/// What stands in a record in the place of a content that is too large: the file of the log's folder that has the JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The SHA-256 of the file's bytes in hexadecimal, which is also its name.
    #[serde(rename = "$file")]
    pub file: String,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Why a body that is stored can't be had.
#[derive(Debug, thiserror::Error)]
#[error("the file {file} in {} that the session log names {what}", folder.display())]
pub struct BodyError {
    pub(crate) folder: std::path::PathBuf,
    pub(crate) file: String,
    pub(crate) what: String,
}

impl BodyError {
    /// The log that names the file.
    pub(crate) fn log(&self) -> std::path::PathBuf {
        self.folder.with_extension("")
    }
}

impl<'l> Body<'l> {
    /// What the text of a record's content means.
    pub(crate) fn of(raw: &'l RawValue) -> Result<Self, Flaw> {
        if !raw.get().starts_with(NAMES_FILE) {
            return Ok(Self::Inline(Cow::Borrowed(raw)));
        }
        let stored: Stored =
            serde_json::from_str(raw.get()).map_err(|error| Flaw::NotARecord(error.to_string()))?;
        if !is_digest(&stored.file) {
            return Err(Flaw::NotARecord(
                "`$file` is the name of no file that toolq made".to_owned(),
            ));
        }
        Ok(Self::Stored(stored))
    }

    /// The same without the line that it stands in.
    pub(crate) fn into_owned(self) -> Body<'static> {
        match self {
            Self::Inline(raw) => Body::Inline(Cow::Owned(raw.into_owned())),
            Self::Stored(stored) => Body::Stored(stored),
        }
    }

    /// How many bytes of JSON it has.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(raw) => raw.get().len() as u64,
            Self::Stored(stored) => stored.bytes,
        }
    }

    /// Whether it stands in a file.
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Inline(raw) if raw.get() == "null")
    }

    /// The JSON, from the folder of `log` where it stands there. A file that is not what the record says is refused.
    ///
    /// # Errors
    /// The file is missing, is no regular file, or has other bytes.
    pub fn load(&self, log: &Path) -> Result<Box<RawValue>, BodyError> {
        let stored = match self {
            Self::Inline(raw) => return Ok(raw.clone().into_owned()),
            Self::Stored(stored) => stored,
        };
        let folder = folder_of(log);
        read(&folder, stored).map_err(|what| BodyError {
            folder,
            file: stored.file.clone(),
            what,
        })
    }
}

/// Whether it is the name of a file of the log's folder.
pub(crate) fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

fn read(folder: &Path, stored: &Stored) -> Result<Box<RawValue>, String> {
    let (file, found) = open_regular(folder, &stored.file)?;
    if found != stored.bytes {
        let bytes = stored.bytes;
        return Err(format!("has {found} bytes; {bytes} were written"));
    }
    let mut json = Vec::with_capacity(usize::try_from(stored.bytes).unwrap_or_default());
    file.take(stored.bytes)
        .read_to_end(&mut json)
        .map_err(|error| unreadable(&error))?;
    if sha256(&json) != stored.file {
        return Err("has other bytes than were written".to_owned());
    }
    let json = String::from_utf8(json).map_err(|_| "is no UTF-8".to_owned())?;
    RawValue::from_string(json).map_err(|error| format!("is no JSON: {error}"))
}

/// Why a file can't be read.
pub(crate) fn unreadable(error: &io::Error) -> String {
    format!("can't be read: {error}")
}

/// Opens a file of the folder, and tells its length.
pub(crate) fn open_regular(folder: &Path, name: &str) -> Result<(File, u64), String> {
    let file = open(folder, name).map_err(|error| unreadable(&error))?;
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err("is no regular file".to_owned());
    }
    Ok((file, metadata.len()))
}

/// Opens a file of the folder. Neither may be a link, and a pipe is not waited for.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags | OFlags::DIRECTORY, Mode::empty())?;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    Ok(File::from(file))
}
