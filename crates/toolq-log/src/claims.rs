//! One folder with one entry for each attempt at a call, and for what people and probes say about it. Entries are made once and
//! never changed or removed, so of several that make one, exactly one succeeds.
//!
//! `KEY.N~A` is attempt A at the N-th call with this key: a link to `LOG:OFFSET:GENERATION:MESSAGE:BEFORE`, the record of its
//! start and where the call stands. It leads nowhere, but making it is a single step. `.s` says how the attempt was settled, `.qN`
//! is a question whether it may start, and `.dN` the decision about that.
//!
//! An entry is seen before it is durable. Whoever decides by one syncs the folder first.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::identity::MemoryKey;
use toolq_core::os::{create_private_dir, failpoint, sync_parent};
use toolq_core::types::{CallContext, ContextDigest};

/// Largest entry that is a file, in bytes. Results are larger than anything else that people say about a call.
const MAX_ENTRY_BYTES: u64 = 64 << 20;

/// The folder of a memory.
#[derive(Debug)]
pub struct ClaimsDir {
    path: PathBuf,
    dir: File,
    /// Whether entries that say no more than a few words are links. Not all file systems have links.
    has_links: bool,
}

/// The name of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, derive_more::Display)]
#[display("{key}.{instance}~{attempt}")]
pub struct EntryName {
    /// The key of the call.
    pub key: MemoryKey,
    /// The number of the call among those with this key, counted from 1.
    pub instance: u32,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
}

/// What an entry that is a link says: `LOG:OFFSET:WORD:MESSAGE:BEFORE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEntry<T> {
    /// The name of the log, without its ending.
    pub log: String,
    /// Where the record is that announces the start, or that of the call that waits.
    pub offset: u64,
    /// What only this kind of entry says.
    pub word: T,
    /// Where the call stands.
    pub context: CallContext,
}

/// What an attempt's entry says. Its word is how often the call was repeated on purpose.
pub type Claim = LinkEntry<u32>;

/// A call that waits for an approval. Its word is a digest of what would run.
pub type Question = LinkEntry<String>;

/// What was said about an attempt that was in doubt.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// Whether the call was done.
    pub done: bool,
    /// The result, if it was: text, or blocks.
    pub result: Option<Value>,
    /// Whether that is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Who said so: `person` or `probe`.
    pub by: String,
    /// The person's reason.
    pub note: Option<String>,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
}

/// What was said about a question.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Whether what the question asks about may run.
    pub approved: bool,
    /// The reason.
    pub reason: Option<String>,
    /// Who decided.
    pub user: Option<String>,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
}

/// Whether an entry was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made<T> {
    /// It is ours.
    New,
    /// It was there.
    Existed(T),
}

impl EntryName {
    /// Reads a name with what follows it: nothing for the attempt itself.
    pub fn parse(name: &str) -> Option<(Self, &str)> {
        let (call, rest) = name.split_once('~')?;
        let (key, instance) = call.split_once('.')?;
        let digits = rest.find('.').unwrap_or(rest.len());
        let (attempt, suffix) = rest.split_at(digits);
        let name = Self {
            key: MemoryKey::parse(key)?,
            instance: instance.parse().ok()?,
            attempt: attempt.parse().ok()?,
        };
        Some((name, suffix))
    }
}

impl ClaimsDir {
    /// Opens the folder, which is created if it is missing.
    ///
    /// # Errors
    /// It can't be opened or created.
    pub fn create(path: &Path) -> io::Result<Self> {
        create_private_dir(path)?;
        // Another process may have created it just now.
        sync_parent(path)?;
        Self::open(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the folder. `None` if there is none: nothing is remembered.
    ///
    /// # Errors
    /// It can't be opened.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(dir) => Ok(Some(Self {
                path: path.to_owned(),
                dir: dir.into(),
                has_links: true,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(test)]
    pub(crate) fn without_links(self) -> Self {
        Self {
            has_links: false,
            ..self
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Blocks until all entries survive a power loss.
    ///
    /// # Errors
    /// They may not.
    pub fn sync(&self) -> io::Result<()> {
        failpoint("claims.sync.before")?;
        self.dir.sync_all()?;
        failpoint("claims.sync.after")
    }

    /// Makes the entry of an attempt, which is durable after [`Self::sync`]. Nothing may start if it was there.
    ///
    /// # Errors
    /// It can't be made.
    pub fn claim(&self, name: &EntryName, claim: &Claim) -> io::Result<Made<Claim>> {
        failpoint("claim.before")?;
        let made = self.make_link(&name.to_string(), &claim.to_string(), parse_claim)?;
        failpoint("claim.after")?;
        Ok(made)
    }

    /// Reads the entry of an attempt.
    ///
    /// # Errors
    /// It can't be read, or isn't one.
    pub fn read_claim(&self, name: &EntryName) -> io::Result<Option<Claim>> {
        self.read_link(&name.to_string(), parse_claim)
    }

    /// Records how an attempt was settled. Only the first settlement counts.
    ///
    /// # Errors
    /// It can't be recorded.
    pub fn settle(
        &self,
        name: &EntryName,
        settlement: &Settlement,
    ) -> io::Result<Made<Settlement>> {
        self.make_file(&format!("{name}.s"), settlement)
    }

    /// Reads how an attempt was settled.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_settlement(&self, name: &EntryName) -> io::Result<Option<Settlement>> {
        self.read_file(&format!("{name}.s"))
    }

    /// Reads how the latest settled attempt at the call with this key was settled. `None` if several calls have it.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_only_settlement(&self, key: &MemoryKey) -> io::Result<Option<Settlement>> {
        let name = |instance, attempt| EntryName {
            key: key.clone(),
            instance,
            attempt,
        };
        let mut settlement = None;
        for attempt in 1.. {
            if self.read_claim(&name(1, attempt))?.is_none() {
                break;
            }
            settlement = self.read_settlement(&name(1, attempt))?.or(settlement);
        }
        let is_only = self.read_claim(&name(2, 1))?.is_none();
        Ok(settlement.filter(|_| is_only))
    }

    /// Asks whether an attempt may start. Returns the number of the question: an earlier one about the same thing is not asked
    /// again, unless it `is_repeated`.
    ///
    /// # Errors
    /// It can't be recorded.
    pub fn ask(&self, name: &EntryName, question: &Question, is_repeated: bool) -> io::Result<u32> {
        for number in 1.. {
            let link = format!("{name}.q{number}");
            match self.make_link(&link, &question.to_string(), Question::parse)? {
                Made::Existed(other) if is_repeated || other.word != question.word => {}
                Made::New | Made::Existed(_) => return Ok(number),
            }
        }
        unreachable!("numbers don't end before the disk is full")
    }

    /// Reads a question.
    ///
    /// # Errors
    /// It can't be read, or isn't one.
    pub fn read_question(&self, name: &EntryName, number: u32) -> io::Result<Option<Question>> {
        self.read_link(&format!("{name}.q{number}"), Question::parse)
    }

    /// Records the decision about a question. Only the first one counts.
    ///
    /// # Errors
    /// It can't be recorded.
    pub fn decide(
        &self,
        name: &EntryName,
        number: u32,
        decided: &Decided,
    ) -> io::Result<Made<Decided>> {
        self.make_file(&format!("{name}.d{number}"), decided)
    }

    /// Reads the decision about a question.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read_decision(&self, name: &EntryName, number: u32) -> io::Result<Option<Decided>> {
        self.read_file(&format!("{name}.d{number}"))
    }

    /// Returns the names of all entries.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Makes an entry of a few words, or returns the one that is there.
    fn make_link<T>(
        &self,
        name: &str,
        target: &str,
        parse: fn(&str) -> Option<T>,
    ) -> io::Result<Made<T>> {
        let made = if self.has_links {
            rustix::fs::symlinkat(target, &self.dir, name)
        } else {
            Err(Errno::OPNOTSUPP)
        };
        let made = match made {
            Err(Errno::PERM | Errno::OPNOTSUPP) => self.make_small_file(name, target),
            made => made.map_err(io::Error::from),
        };
        match made {
            Ok(()) => Ok(Made::New),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                existing_entry(name, self.read_link(name, parse)?)
            }
            Err(error) => Err(error),
        }
    }

    fn make_small_file(&self, name: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    fn read_link<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> io::Result<Option<T>> {
        let text = match rustix::fs::readlinkat(&self.dir, name, Vec::new()) {
            Ok(target) => target.into_bytes(),
            Err(Errno::NOENT) => return Ok(None),
            // It isn't a link.
            Err(Errno::INVAL) => self.read_bytes(name)?.unwrap_or_default(),
            Err(error) => return Err(error.into()),
        };
        let parsed = str::from_utf8(&text).ok().and_then(parse);
        parsed.map(Some).ok_or_else(|| invalid_entry(name))
    }

    /// Makes an entry that says more, or returns the one that is there. It has its name only once it is complete.
    fn make_file<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        content: &T,
    ) -> io::Result<Made<T>> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let partial = format!("{name}.part-{number:016x}");
        let text = serde_json::to_string(content)?;
        if text.len() as u64 > MAX_ENTRY_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let remove_partial = || {
            let _ = rustix::fs::unlinkat(&self.dir, &*partial, AtFlags::empty());
        };
        self.make_small_file(&partial, &text)
            .inspect_err(|_| remove_partial())?;
        let renamed = rustix::fs::renameat_with(
            &self.dir,
            &*partial,
            &self.dir,
            name,
            RenameFlags::NOREPLACE,
        );
        let renamed = match renamed {
            // A file system that can't do this in one step.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(&self.dir, &*partial, &self.dir, name, AtFlags::empty())
            }
            renamed => renamed,
        };
        remove_partial();
        match renamed {
            Ok(()) => Ok(Made::New),
            Err(Errno::EXIST) => existing_entry(name, self.read_file(name)?),
            Err(error) => Err(error.into()),
        }
    }

    fn read_file<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let Some(bytes) = self.read_bytes(name)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|_| invalid_entry(name))
    }

    fn read_bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(MAX_ENTRY_BYTES).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

fn existing_entry<T>(name: &str, entry: Option<T>) -> io::Result<Made<T>> {
    let entry = entry.map(Made::Existed);
    entry.ok_or_else(|| invalid_entry(name))
}

fn invalid_entry(name: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the entry {name} is damaged"),
    )
}

impl<T: fmt::Display> fmt::Display for LinkEntry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            log, offset, word, ..
        } = self;
        let CallContext { message, before } = self.context;
        let digest =
            |digest: Option<ContextDigest>| digest.map_or_else(String::new, |d| d.to_string());
        let (message, before) = (digest(message), digest(before));
        write!(f, "{log}:{offset}:{word}:{message}:{before}")
    }
}

impl<T: FromStr> LinkEntry<T> {
    /// A log's name may have colons, too.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(5, ':');
        let mut digest = || match parts.next()? {
            "" => Some(None),
            text => ContextDigest::parse(text).map(Some),
        };
        let (before, message) = (digest()?, digest()?);
        let (word, offset) = (parts.next()?, parts.next()?);
        Some(Self {
            log: parts.next()?.to_owned(),
            offset: offset.parse().ok()?,
            word: word.parse().ok()?,
            context: CallContext { message, before },
        })
    }
}

fn parse_claim(text: &str) -> Option<Claim> {
    // Where there are no links, the file may have been made and not written. Its log isn't known then.
    Claim::parse(if text.is_empty() { ":0:1::" } else { text })
}

/// Returns the name of a log as entries say it: that of its file, without `.jsonl`.
pub(crate) fn log_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(OsStr::from_bytes(b""));
    let name = name.to_string_lossy();
    name.strip_suffix(".jsonl").unwrap_or(&name).to_owned()
}
