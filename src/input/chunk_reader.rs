//! Bytes as they arrive. Before a run has begun they are waited for here; then a thread reads them, so that what runs and
//! what arrives go on beside each other.

use std::fs::File;
use std::io::{self, Read};
use std::thread;

use tokio::sync::mpsc;

/// Bytes that are read at once, at most.
const PIECE: usize = 64 << 10;
/// Pieces that may wait until they are looked at.
const WAITING: usize = 4;

/// An input that is read as it arrives.
pub struct Feed {
    /// What was read of it already.
    begin: Vec<u8>,
    from: From,
}

enum From {
    Here(File),
    Thread(mpsc::Receiver<io::Result<Vec<u8>>>),
}

impl Feed {
    /// `file` from its present position on, behind `begin`.
    pub fn new(begin: Vec<u8>, file: File) -> Self {
        let from = From::Here(file);
        Self { begin, from }
    }

    /// Waits for the next bytes; none at the end. Only before [`detach`](Self::detach).
    pub fn wait(&mut self) -> io::Result<Vec<u8>> {
        if !self.begin.is_empty() {
            return Ok(std::mem::take(&mut self.begin));
        }
        match &mut self.from {
            From::Here(file) => piece(file),
            From::Thread(_) => Ok(Vec::new()),
        }
    }

    /// Lets a thread read from now on. It ends with its input, with the program, or when nobody listens any more.
    pub fn detach(&mut self) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let From::Here(mut file) = std::mem::replace(&mut self.from, From::Thread(receiver)) else {
            return Ok(());
        };
        let read = move || {
            loop {
                let read = piece(&mut file);
                let over = read.as_ref().map_or(true, Vec::is_empty);
                if sender.blocking_send(read).is_err() || over {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(read)?;
        Ok(())
    }

    /// The next bytes; none at the end. Only after [`detach`](Self::detach). What is dropped here loses nothing.
    pub async fn next(&mut self) -> io::Result<Vec<u8>> {
        if !self.begin.is_empty() {
            return Ok(std::mem::take(&mut self.begin));
        }
        match &mut self.from {
            From::Here(_) => Ok(Vec::new()),
            From::Thread(pieces) => pieces.recv().await.unwrap_or_else(|| Ok(Vec::new())),
        }
    }
}

fn piece(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
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
