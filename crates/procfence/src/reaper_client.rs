//! The host's connection to one reaper.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::fd_passing::send_with_fds;
use crate::protocol::{REPLY_BYTES, ReaperReply, ReaperRequest};
use crate::sandbox::SandboxShape;

/// A connection to a reaper that is idle or serves one call. When it is dropped, the reaper kills what it started at
/// once. If it is closed in any other way, the host has died, and the programs get a grace period.
#[derive(Debug)]
pub struct ReaperClient {
    pub(crate) number: u64,
    /// The shape of the sandboxes that the reaper prepares, if it confines programs.
    pub(crate) shape: Option<SandboxShape>,
    pub(crate) socket: UnixStream,
}

impl ReaperClient {
    /// Sends an encoded request, with descriptors if it starts a program.
    ///
    /// # Errors
    /// The reaper is gone.
    pub async fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let attached = if sent == 0 { descriptors } else { &[] };
            let send = || send_with_fds(&self.socket, &bytes[sent..], attached);
            match self.socket.try_io(Interest::WRITABLE, send) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a short request without waiting.
    pub fn try_send(&self, request: &ReaperRequest) {
        let send = || send_with_fds(&self.socket, &request.encode(), &[]);
        // If the reaper doesn't read anymore, its call is ended by other means.
        let _ = self.socket.try_io(Interest::WRITABLE, send);
    }

    /// Waits for the next reply. Cancel safe.
    ///
    /// # Errors
    /// The reaper is gone, or its reply is malformed.
    pub async fn receive_reply(&self) -> io::Result<ReaperReply> {
        let mut bytes = [0; REPLY_BYTES];
        loop {
            match self.socket.try_read(&mut bytes) {
                // A reaper writes each reply as a whole.
                Ok(REPLY_BYTES) => {
                    return ReaperReply::parse(bytes)
                        .ok_or_else(|| io::ErrorKind::InvalidData.into());
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

impl Drop for ReaperClient {
    fn drop(&mut self) {
        let request = ReaperRequest::Terminate(Duration::ZERO).encode();
        // An idle reaper ignores this. A reaper that is gone, or no longer reads, can't receive it, which is fine.
        let _ = send_with_fds(&self.socket, &request, &[]);
    }
}
