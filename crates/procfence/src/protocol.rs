//! The protocol between the host and a reaper: requests with a header and a body, replies of a fixed size.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::exit::{ExceededLimit, ProgramExit};
use crate::fd_passing::receive_with_fds;
use crate::spawn::SpawnRequest;
use crate::spawn_request_encoding::{parse_spawn_request, write_spawn_request};

/// Size of a request's header: the length of the body (four bytes) and the kind of request (one).
const HEADER_BYTES: usize = 5;
/// Size of a reply.
pub(crate) const REPLY_BYTES: usize = 12;

/// A request of the host to a reaper.
#[derive(Debug)]
pub enum ReaperRequest {
    /// Start this program. Its four descriptors are attached to the first byte.
    Start(Box<SpawnRequest>),
    /// Send this signal to the processes of the call.
    Signal(i32),
    /// Terminate all processes of the call: with SIGTERM first, and with SIGKILL after this grace period.
    Terminate(Duration),
    /// Release what is still running, and exit.
    Release,
}

/// A reply of a reaper to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Encodes the request, header included.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Start(spawn_request) => Self::encode_start(spawn_request),
            Self::Signal(signal) => encode_frame(b'K', |bytes| bytes.extend(signal.to_le_bytes())),
            Self::Terminate(grace) => {
                encode_frame(b'E', |bytes| bytes.extend(encode_millis(*grace)))
            }
            Self::Release => encode_frame(b'R', |_| ()),
        }
    }

    /// Encodes [`Self::Start`] without taking ownership of the request.
    pub fn encode_start(spawn_request: &SpawnRequest) -> Vec<u8> {
        encode_frame(b'S', |bytes| write_spawn_request(spawn_request, bytes))
    }

    fn parse(kind: u8, body: &[u8]) -> Option<Self> {
        Some(match kind {
            b'S' => Self::Start(Box::new(parse_spawn_request(body)?)),
            b'K' => Self::Signal(i32::from_le_bytes(body.try_into().ok()?)),
            b'E' => Self::Terminate(Duration::from_millis(u64::from_le_bytes(
                body.try_into().ok()?,
            ))),
            b'R' => Self::Release,
            _ => return None,
        })
    }

    /// Waits for the next request and the descriptors attached to it. Returns `None` if the host is gone.
    pub(crate) fn receive(mut socket: &UnixStream) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        let mut header = [0; HEADER_BYTES];
        let (read, descriptors) = match receive_with_fds(socket, &mut header) {
            Ok((0, _)) => return Ok(None),
            // The host died without having read the last reply.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            received => received?,
        };
        socket.read_exact(&mut header[read..])?;
        let [length @ .., kind] = header;
        let mut body = Vec::new();
        socket
            .take(u32::from_le_bytes(length).into())
            .read_to_end(&mut body)?;
        let request = Self::parse(kind, &body).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some((request, descriptors)))
    }
}

pub(crate) fn encode_millis(duration: Duration) -> [u8; 8] {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .to_le_bytes()
}

/// Encodes a header and the body that `write` appends.
fn encode_frame(kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    write(&mut bytes);
    // The system limits the arguments of a program to far less than fits into a length of four bytes.
    let length = u32::try_from(bytes.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4] = kind;
    bytes
}

impl ReaperReply {
    pub(crate) fn encode(self) -> [u8; REPLY_BYTES] {
        let (kind, exit, number, has_survivors) = match self {
            Self::NotStarted(errno) => (b'N', ProgramExit::Code(errno), 0, false),
            Self::NotConfined(errno) => (b'C', ProgramExit::Code(errno), 0, false),
            Self::Started(pid) => (b'P', ProgramExit::Code(pid), 0, false),
            Self::Exited { exit, tree_is_gone } => (b'X', exit, u32::from(tree_is_gone), false),
            Self::Terminated {
                exit,
                leftovers,
                has_survivors,
            } => (b'G', exit, leftovers, has_survivors),
        };
        let (tag, code) = match exit {
            ProgramExit::Signal(signal) => (1, signal),
            ProgramExit::LimitExceeded(ExceededLimit::Cpu) => (2, 0),
            ProgramExit::LimitExceeded(ExceededLimit::FileSize) => (3, 0),
            ProgramExit::LimitExceeded(ExceededLimit::Processes) => (4, 0),
            ProgramExit::Code(code) => (0, code),
        };
        let mut bytes = [0; REPLY_BYTES];
        (bytes[0], bytes[1], bytes[2]) = (kind, tag, has_survivors.into());
        bytes[4..8].copy_from_slice(&code.to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Parses a reply. Returns `None` if it is malformed.
    pub(crate) fn parse(bytes: [u8; REPLY_BYTES]) -> Option<Self> {
        let [kind, tag, has_survivors, _, code @ .., a, b, c, d] = bytes;
        let (code, number) = (i32::from_le_bytes(code), u32::from_le_bytes([a, b, c, d]));
        let exit = match tag {
            0 => ProgramExit::Code(code),
            1 => ProgramExit::Signal(code),
            2 => ProgramExit::LimitExceeded(ExceededLimit::Cpu),
            3 => ProgramExit::LimitExceeded(ExceededLimit::FileSize),
            4 => ProgramExit::LimitExceeded(ExceededLimit::Processes),
            _ => return None,
        };
        Some(match kind {
            b'N' => Self::NotStarted(code),
            b'C' => Self::NotConfined(code),
            b'P' => Self::Started(code),
            b'X' => Self::Exited {
                exit,
                tree_is_gone: number == 1,
            },
            b'G' => Self::Terminated {
                exit,
                leftovers: number,
                has_survivors: has_survivors == 1,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsFd as _;

    use crate::fd_passing::send_with_fds;
    use crate::limits::ResourceLimits;
    use crate::sandbox::{NetworkAccess, ProgramSandbox};

    use super::*;

    #[test]
    fn a_start_request_survives_the_wire() {
        let text = |text: &str| CString::new(text).unwrap();
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
            sandbox: Some(ProgramSandbox {
                paths: Vec::new(),
                bounds: "/".into(),
                network: NetworkAccess::TcpPorts(vec![443]),
                allows_gaps: false,
            }),
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
        assert_eq!(descriptors.len(), 1);
        drop((sender, descriptors));
        assert!(ReaperRequest::receive(&receiver).unwrap().is_none());
    }

    #[test]
    fn a_reply_survives_the_wire() {
        let exits = [
            ProgramExit::Code(255),
            ProgramExit::Signal(9),
            ProgramExit::LimitExceeded(ExceededLimit::Cpu),
        ];
        let terminated = exits.map(|exit| ReaperReply::Terminated {
            exit,
            leftovers: 70_000,
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
