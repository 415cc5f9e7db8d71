//! toolq's line to one keeper.

use std::io;
use std::os::fd::BorrowedFd;

use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::fd_passing::send_with;
use crate::protocol::{REPLY, Reply, Request};

/// A keeper that serves one call, or none. Dropped, it ends what it has started.
#[derive(Debug)]
pub struct Keeper {
    pub(crate) number: u64,
    pub(crate) socket: UnixStream,
}

impl Keeper {
    /// Sends a request; descriptors go with a program that is to be started.
    ///
    /// # Errors
    /// The keeper is gone.
    pub async fn ask(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let beside = if sent == 0 { descriptors } else { &[] };
            let some = || send_with(&self.socket, &bytes[sent..], beside);
            match self.socket.try_io(Interest::WRITABLE, some) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks for something short, without waiting.
    pub fn tell(&self, request: &Request) {
        let send = || send_with(&self.socket, &request.bytes(), &[]);
        // Where a keeper doesn't listen any more, its call ends by other means.
        let _ = self.socket.try_io(Interest::WRITABLE, send);
    }

    /// Waits for what it says next; can be given up and taken up again.
    ///
    /// # Errors
    /// The keeper is gone.
    pub async fn hear(&self) -> io::Result<Reply> {
        let mut bytes = [0; REPLY];
        loop {
            match self.socket.try_read(&mut bytes) {
                // It writes whole replies at once.
                Ok(REPLY) => {
                    return Reply::parse(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into());
                }
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.readable().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
