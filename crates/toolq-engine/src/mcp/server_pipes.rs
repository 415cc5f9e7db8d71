//! Reads and writes the pipes of a program as far as they let it, without blocking the task that serves them all.

use std::io;
use std::mem;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::coop::consume_budget;

/// How many bytes are read at once.
const READ_CHUNK_BYTES: usize = 64 << 10;
/// How much memory is kept once all is written.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Reads what is there. Returns `None`, and closes the pipe, at its end.
pub(super) async fn read_chunk(pipe: &mut Option<Receiver>) -> Option<Vec<u8>> {
    // A program that writes all the time must not keep the task from everything else.
    consume_budget().await;
    let reader = pipe.as_mut()?;
    loop {
        // Allocates only once there is data, since all pipes are polled whenever one of them has some.
        if reader.readable().await.is_err() {
            break;
        }
        let mut bytes = Vec::with_capacity(READ_CHUNK_BYTES);
        match reader.try_read_buf(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(read) if read > 0 => return Some(bytes),
            Ok(_) | Err(_) => break,
        }
    }
    *pipe = None;
    None
}

/// Reads what is there into `chunk`. Returns whether the pipe is open, and closes it at its end. Needs one system call where
/// [`read_chunk`] needs two: a read that doesn't fill the buffer has emptied the pipe.
pub(super) async fn read_into(pipe: &mut Option<Receiver>, chunk: &mut Vec<u8>) -> bool {
    consume_budget().await;
    if let Some(reader) = pipe.as_mut() {
        chunk.clear();
        chunk.reserve(READ_CHUNK_BYTES);
        if let Ok(1..) = reader.read_buf(chunk).await {
            return true;
        }
    }
    *pipe = None;
    false
}

/// Writes as much as the pipe takes. Returns whether it is open: a server that has closed its stdin gets nothing more.
pub(super) async fn write_some(pipe: &mut Option<Sender>, unsent: &mut Vec<u8>) -> bool {
    let Some(writer) = pipe else {
        mem::take(unsent);
        return false;
    };
    match writer.try_write(unsent) {
        Ok(written) => {
            unsent.drain(..written);
            if unsent.is_empty() {
                unsent.shrink_to(MAX_KEPT_BYTES);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let _ = writer.writable().await;
        }
        Err(_) => *pipe = None,
    }
    pipe.is_some()
}
