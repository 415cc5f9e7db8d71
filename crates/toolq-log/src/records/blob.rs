//! The content of a record: JSON in its line, or a reference to a file in the directory `LOG.d`.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use rustix::fs::{Mode, OFlags};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use toolq_core::os::{create_private_dir, failpoint, sync_parent};

/// What a model reads as the result of a call whose result was pruned.
pub(crate) const PRUNED_RESULT: &str = "This call was done. Its result is no longer on record.";

/// How a reference to a blob begins. Other content that begins like this is stored as a blob, too, so that it can't be
/// mistaken for a reference.
pub(crate) const BLOB_REF_PREFIX: &str = r#"{"$file""#;

/// The content of a record, or a part of its metadata that may be as large: JSON in the record itself, or in a file in
/// the log's blob directory.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RecordContent<'l> {
    /// JSON in the record.
    Inline(Cow<'l, RawValue>),
    /// A reference to a file, because the JSON was too large for a record.
    Stored(StoredBlob),
}

/// A reference to the file in `LOG.d` that holds JSON too large for its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredBlob {
    /// SHA-256 of the file's bytes in hexadecimal; also the name of the file.
    #[serde(rename = "$file")]
    pub file: String,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl StoredBlob {
    /// Returns the reference to the file that holds this JSON.
    pub(crate) fn of(json: &[u8]) -> Self {
        Self {
            file: sha256_hex(json),
            bytes: json.len() as u64,
        }
    }
}

/// Why a blob can't be read.
#[derive(Debug, thiserror::Error)]
#[error("the file {file} in {}, referenced by the session log, {problem}", dir.display())]
pub struct BlobError {
    pub(crate) dir: PathBuf,
    pub(crate) file: String,
    pub(crate) problem: String,
}

impl RecordContent<'_> {
    /// Copies the content out of the line that it borrows from.
    pub(crate) fn into_owned(self) -> RecordContent<'static> {
        match self {
            Self::Inline(raw) => RecordContent::Inline(Cow::Owned(raw.into_owned())),
            Self::Stored(stored) => RecordContent::Stored(stored),
        }
    }

    /// Returns the size of the JSON in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(raw) => raw.get().len() as u64,
            Self::Stored(stored) => stored.bytes,
        }
    }

    /// Returns whether the JSON is stored in a file.
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_))
    }

    /// Returns whether the content is `null`.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Inline(raw) if raw.get() == "null")
    }

    /// Returns the JSON. If it is stored in a file, reads it from the blob directory of `log` and verifies it.
    ///
    /// # Errors
    /// The file is missing, isn't a regular file, or doesn't have the recorded size and SHA-256.
    pub fn load(&self, log: &Path) -> Result<Box<RawValue>, BlobError> {
        let stored = match self {
            Self::Inline(raw) => return Ok(raw.clone().into_owned()),
            Self::Stored(stored) => stored,
        };
        let dir = blob_dir_for(log);
        read_blob(&dir, stored).map_err(|problem| BlobError {
            dir,
            file: stored.file.clone(),
            problem,
        })
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for RecordContent<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        if !raw.get().starts_with(BLOB_REF_PREFIX) {
            return Ok(Self::Inline(Cow::Borrowed(raw)));
        }
        let stored: StoredBlob = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        if !is_sha256_hex(&stored.file) {
            return Err(D::Error::custom(
                "`$file` isn't a file name that toolq generates",
            ));
        }
        Ok(Self::Stored(stored))
    }
}

impl JsonSchema for RecordContent<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RecordContent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let stored = generator.subschema_for::<StoredBlob>();
        json_schema!({"anyOf": [{"type": ["object", "string"]}, stored]})
    }
}

/// Returns whether `name` has the form of a blob's file name.
pub(crate) fn is_sha256_hex(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether `text` has the form of the extension of a saved file.
pub(crate) fn is_file_extension(text: &str) -> bool {
    text.len() <= 4 && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn read_blob(dir: &Path, stored: &StoredBlob) -> Result<Box<RawValue>, String> {
    let (file, found_bytes) = open_regular_file(dir, &stored.file)?;
    if found_bytes != stored.bytes {
        let bytes = stored.bytes;
        return Err(format!("has {found_bytes} bytes, but {bytes} were written"));
    }
    let mut json = Vec::with_capacity(usize::try_from(stored.bytes).unwrap_or_default());
    file.take(stored.bytes)
        .read_to_end(&mut json)
        .map_err(|error| read_error_text(&error))?;
    if sha256_hex(&json) != stored.file {
        return Err("doesn't match its SHA-256".to_owned());
    }
    let json = String::from_utf8(json).map_err(|_| "isn't valid UTF-8".to_owned())?;
    RawValue::from_string(json).map_err(|error| format!("isn't valid JSON: {error}"))
}

/// Describes why a file can't be read.
pub(crate) fn read_error_text(error: &io::Error) -> String {
    format!("can't be read: {error}")
}

/// Opens a file in the blob directory and returns it with its size in bytes.
pub(crate) fn open_regular_file(dir: &Path, name: &str) -> Result<(File, u64), String> {
    let file = open_in_dir(dir, name).map_err(|error| read_error_text(&error))?;
    let metadata = file.metadata().map_err(|error| read_error_text(&error))?;
    if !metadata.is_file() {
        return Err("isn't a regular file".to_owned());
    }
    Ok((file, metadata.len()))
}

/// Opens a file in the blob directory. Neither may be a symbolic link, and opening a pipe doesn't block.
fn open_in_dir(dir: &Path, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags | OFlags::DIRECTORY, Mode::empty())?;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    Ok(File::from(file))
}

/// Returns the directory next to a log for content that is too large for a record: `LOG.d`.
pub fn blob_dir_for(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".d");
    PathBuf::from(name)
}

/// Returns the SHA-256 in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

// Stores content that is too large for a record in files of its own.

/// Writes JSON to a file in the directory `LOG.d`, which is created for the first one. When this returns, the file and its name survive
/// a power loss.
pub(crate) fn store_blob(dir: &Path, json: &[u8]) -> io::Result<StoredBlob> {
    let stored = StoredBlob::of(json);
    let write = || {
        create_private_dir(dir)?;
        failpoint("body.before")?;
        write_file_atomically(&dir.join(&stored.file), json)?;
        failpoint("body.after")
    };
    write().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", dir.display())))?;
    Ok(stored)
}

/// Creates a file that only its owner can read. Once it has its name, it is complete, even after a power loss. If it
/// can't be written completely, nothing is left behind, so that a full disk gets its space back.
pub(crate) fn write_file_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut partial_path = path.as_os_str().to_owned();
    partial_path.push(".part");
    let partial_path = PathBuf::from(partial_path);
    let _ = fs::remove_file(&partial_path);
    let written = write_and_sync(&partial_path, bytes).and_then(|()| {
        failpoint("rename.before")?;
        fs::rename(&partial_path, path)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&partial_path);
        return Err(error);
    }
    failpoint("rename.after")?;
    sync_parent(path)
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}
