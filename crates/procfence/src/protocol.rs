//! What the host and a reaper send each other, in the format of postcard.

use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::program::{ProgramExit, SpawnRequest};

/// Size of the length before each request.
const LENGTH_BYTES: usize = 4;
/// Size of a reply. One that needs less ends with zeros.
pub(crate) const REPLY_BYTES: usize = 16;

/// A request of the host to a reaper.
#[derive(Debug, Serialize, Deserialize)]
pub enum ReaperRequest {
    /// Start this program. Its four descriptors are attached to the first byte.
    Start(Box<SpawnRequest>),
    /// Send this signal to the processes of the call.
    Signal(i32),
    /// Terminate all processes of the call: with SIGTERM first, and with SIGKILL after this grace period.
    Terminate(Duration),
    /// Release what is still running, and exit. The descriptors are the pipes that it may still write to.
    Release,
}

/// A reply of a reaper to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReaperReply {
    /// Nothing was started. Holds the operating system's error number.
    NotStarted(i32),
    /// The program couldn't be confined, so nothing was started. Holds the operating system's error number.
    NotConfined(i32),
    /// The program runs, with this process id. Only where the request asks for it, and before any other reply.
    Started(i32),
    /// The program has exited.
    Exited {
        /// How the program itself ended.
        exit: ProgramExit,
        /// No process that it started is left.
        tree_is_gone: bool,
    },
    /// The processes of the call were terminated.
    Terminated {
        /// How the program itself ended.
        exit: ProgramExit,
        /// How many processes had to be killed after the program itself had exited.
        leftovers: u32,
        /// Some processes didn't disappear in time. The reaper leaves them to the supervisor, and exits.
        has_survivors: bool,
    },
}

impl ReaperRequest {
    /// Encodes the request, with its length before it.
    pub fn encode(&self) -> Vec<u8> {
        // The format has every type of these fields. The system limits the arguments of a program to far less than fits into
        // a length of four bytes.
        let body = postcard::to_stdvec(self).unwrap_or_default();
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        [&length.to_le_bytes()[..], &body].concat()
    }

    /// Waits for the next request and the descriptors attached to it. Returns `None` if the host is gone.
    pub(crate) fn receive(mut socket: &UnixStream) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        let mut length = [0; LENGTH_BYTES];
        let (read, descriptors) = match receive_with_fds(socket, &mut length) {
            Ok((0, _)) => return Ok(None),
            // The host died without having read the last reply.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            received => received?,
        };
        socket.read_exact(&mut length[read..])?;
        let mut body = Vec::new();
        socket
            .take(u32::from_le_bytes(length).into())
            .read_to_end(&mut body)?;
        let request = postcard::from_bytes(&body).map_err(io::Error::other)?;
        Ok(Some((request, descriptors)))
    }
}

impl ReaperReply {
    pub(crate) fn encode(self) -> [u8; REPLY_BYTES] {
        let mut bytes = [0; REPLY_BYTES];
        // The longest one fits.
        let _ = postcard::to_slice(&self, &mut bytes);
        bytes
    }

    /// Parses a reply. Returns `None` if it is malformed.
    pub(crate) fn parse(bytes: [u8; REPLY_BYTES]) -> Option<Self> {
        postcard::from_bytes(&bytes).ok()
    }
}

// Sending and receiving descriptors over a socket, along with bytes.

/// The descriptors of a program, and one that its reaper keeps open.
const MAX_DESCRIPTORS: usize = 5;

/// Sends as many bytes as the socket accepts, with the descriptors attached to the first one. Returns how many.
pub(crate) fn send_with_fds(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?)
}

/// Receives bytes and the descriptors attached to them, which are close-on-exec. Returns how many bytes were read.
pub(crate) fn receive_with_fds(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)?;
    let descriptors = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    Ok((received.bytes, descriptors.collect()))
}

#[cfg(test)]
mod tests {
    use std::ffi::{CString, OsStr};
    use std::os::fd::AsFd as _;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    use crate::program::{ExceededLimit, ResourceLimits};
    use crate::sandbox::{NetworkAccess, PathAccess, ProgramSandbox, SandboxPath};

    #[test]
    fn a_start_request_survives_the_wire() {
        let text = |text: &str| CString::new(text).unwrap();
        let sandbox = Some(ProgramSandbox {
            paths: vec![SandboxPath {
                path: OsStr::from_bytes(b"/no \xfftext").into(),
                access: PathAccess::Write,
                stays_inside: true,
            }],
            bounds: "/".into(),
            network: NetworkAccess::TcpPorts(vec![443]),
            allows_gaps: false,
        });
        let spawn_request = SpawnRequest {
            path: text("/bin/cat"),
            cwd: text("/"),
            argv: vec![text("cat"), text(""), text("a b\n")],
            env: vec![text("A="), text("B=\u{e9}")],
            limits: ResourceLimits {
                files: Some(0),
                cpu: Some(Duration::from_secs(3)),
                ..ResourceLimits::default()
            },
            sandbox: sandbox.clone(),
            host_exit_grace: Duration::from_millis(1_500),
            reports_pid: true,
        };
        let (sender, receiver) = UnixStream::pair().unwrap();
        let bytes = ReaperRequest::Start(Box::new(spawn_request)).encode();
        assert_eq!(
            send_with_fds(&sender, &bytes, &[sender.as_fd()]).unwrap(),
            bytes.len()
        );
        let (request, descriptors) = ReaperRequest::receive(&receiver).unwrap().unwrap();
        assert_eq!(request.encode(), bytes);
        let ReaperRequest::Start(received) = request else {
            panic!("another request");
        };
        assert_eq!(received.argv[2].as_bytes(), b"a b\n");
        assert_eq!(received.sandbox, sandbox);
        assert_eq!(descriptors.len(), 1);
        drop((sender, descriptors));
        assert!(ReaperRequest::receive(&receiver).unwrap().is_none());
    }

    #[test]
    fn a_reply_survives_the_wire() {
        let exits = [
            ProgramExit::Code(i32::MIN),
            ProgramExit::Signal(9),
            ProgramExit::LimitExceeded(ExceededLimit::Cpu),
        ];
        let terminated = exits.map(|exit| ReaperReply::Terminated {
            exit,
            leftovers: u32::MAX,
            has_survivors: exit == ProgramExit::Signal(9),
        });
        let exited = exits.map(|exit| ReaperReply::Exited {
            exit,
            tree_is_gone: true,
        });
        for reply in terminated.into_iter().chain(exited).chain([
            ReaperReply::NotStarted(13),
            ReaperReply::NotConfined(95),
            ReaperReply::Started(4_194_304),
        ]) {
            assert_eq!(ReaperReply::parse(reply.encode()), Some(reply));
        }
    }
}
