//! Standard input, which `-` names. Only one argument can read it.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::sync::mpsc;

use crate::output::CommandError;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Returns whether stdin is a terminal, where toolq would seem to hang while it waits for input that wasn't asked for.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Returns stdin as a file. A redirected file (`< FILE`) is read in place, like one that was named.
///
/// # Errors
/// Another argument has already read it, or it is closed.
pub fn take() -> Result<File, CommandError> {
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(CommandError::usage("stdin can be read only once")
            .with_hint("leave one `-` in the command, and name files for the rest"));
    }
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| unreadable_stdin(&error))?;
    Ok(File::from(stdin))
}

/// Reads stdin to its end.
///
/// # Errors
/// As [`take`], or reading fails.
pub fn read_to_end() -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    take()?
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable_stdin(&error))?;
    Ok(bytes)
}

/// Returns a file with the content of stdin whose parts can be read in any order.
///
/// # Errors
/// As [`take`], or the content can't be copied to a temporary file.
pub fn spool() -> Result<File, CommandError> {
    let mut stdin = take()?;
    let is_regular = stdin.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_regular {
        return Ok(stdin);
    }
    let spooled = create_temporary_file().and_then(|mut file| {
        io::copy(&mut stdin, &mut file)?;
        Ok(file)
    });
    spooled.map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            uncopied_stdin(&error)
        }
        _ if is_of_temporary_file(&error) => uncopied_stdin(&error),
        _ => unreadable_stdin(&error),
    })
}

fn is_of_temporary_file(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner
        .and_then(|inner| inner.downcast_ref::<TemporaryFileError>())
        .is_some()
}

/// What can't be read twice is copied to a file.
fn uncopied_stdin(error: &io::Error) -> CommandError {
    let message = format!("stdin can't be copied to a temporary file: {error}");
    let failure = CommandError::unusable_file(message, error);
    match failure.hint {
        Some(_) => failure,
        None => failure
            .with_hint("set TMPDIR to a directory with enough space in which you can create files"),
    }
}

fn unreadable_stdin(error: &io::Error) -> CommandError {
    CommandError::unusable_file(format!("stdin can't be read: {error}"), error)
}

// Reads an input as it arrives: blocking until the run starts, then on a background thread, so that calls can run
// while more input arrives.

/// Maximum size of a chunk.
const CHUNK_BYTES: usize = 64 << 10;
/// Capacity of the channel from the background thread. When it is full, the thread stops reading.
const MAX_QUEUED_CHUNKS: usize = 4;

/// An input that is read as it arrives.
pub struct ChunkReader {
    /// Bytes that were already read to detect the format.
    prefix: Vec<u8>,
    source: ChunkSource,
}

enum ChunkSource {
    Direct(File),
    Background(mpsc::Receiver<io::Result<Vec<u8>>>),
}

impl ChunkReader {
    /// Creates a reader that returns `prefix`, then the rest of `file` from its current position.
    pub fn new(prefix: Vec<u8>, file: File) -> Self {
        let source = ChunkSource::Direct(file);
        Self { prefix, source }
    }

    /// Blocks until the next bytes arrive. Returns an empty chunk at the end of the input, and always after
    /// [`read_in_background`](Self::read_in_background).
    pub fn next_blocking(&mut self) -> io::Result<Vec<u8>> {
        if !self.prefix.is_empty() {
            return Ok(std::mem::take(&mut self.prefix));
        }
        match &mut self.source {
            ChunkSource::Direct(file) => read_chunk(file),
            ChunkSource::Background(_) => Ok(Vec::new()),
        }
    }

    /// Starts a thread that does the reading from now on. It ends with the input or when the reader is dropped.
    pub fn read_in_background(&mut self) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
        let ChunkSource::Direct(mut file) =
            std::mem::replace(&mut self.source, ChunkSource::Background(receiver))
        else {
            return Ok(());
        };
        let read = move || {
            loop {
                let read = read_chunk(&mut file);
                let at_end = read.as_ref().map_or(true, Vec::is_empty);
                if sender.blocking_send(read).is_err() || at_end {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(read)?;
        Ok(())
    }

    /// Waits for the next bytes. Returns an empty chunk at the end of the input, and always before
    /// [`read_in_background`](Self::read_in_background). Cancel safe: dropping the future loses no data.
    pub async fn next(&mut self) -> io::Result<Vec<u8>> {
        if !self.prefix.is_empty() {
            return Ok(std::mem::take(&mut self.prefix));
        }
        match &mut self.source {
            ChunkSource::Direct(_) => Ok(Vec::new()),
            ChunkSource::Background(chunks) => {
                chunks.recv().await.unwrap_or_else(|| Ok(Vec::new()))
            }
        }
    }
}

fn read_chunk(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}

/// Why there is no temporary file.
#[derive(Debug, thiserror::Error)]
#[error("a temporary file can't be created in {}: {cause}", dir.display())]
pub struct TemporaryFileError {
    dir: PathBuf,
    #[source]
    cause: io::Error,
}

/// Creates a temporary file in TMPDIR, or else in `/tmp`.
///
/// # Errors
/// [`TemporaryFileError`], within one of this type.
pub fn create_temporary_file() -> io::Result<File> {
    tempfile::tempfile().map_err(|cause| {
        let dir = tempfile::env::temp_dir();
        io::Error::new(cause.kind(), TemporaryFileError { dir, cause })
    })
}
