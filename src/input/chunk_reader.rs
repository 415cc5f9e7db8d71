//! Reads an input as it arrives: blocking until the run starts, then on a background thread, so that calls can run
//! while more input arrives.

use std::fs::File;
use std::io::{self, Read};
use std::thread;

use tokio::sync::mpsc;

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
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}
