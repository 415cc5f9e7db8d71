//! What toolq and a keeper say to each other: requests of a length and a body, replies of a fixed size.

use std::ffi::CStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::exit::{ExceededLimit, ProgramExit};
use crate::fd_passing::receive_with;
use crate::limits::ResourceLimits;
use crate::spawn::Order;

/// Bytes before a request's body: its length and its kind.
const HEAD: usize = 5;
/// Bytes of a reply.
pub(crate) const REPLY: usize = 12;
/// No limit, on the wire.
const NONE: u64 = u64::MAX;

/// What toolq wants of a keeper.
#[derive(Debug)]
pub enum Request {
    /// Start this program; its four descriptors come beside the first byte.
    Start(Box<Order>),
    /// Send this signal to everybody.
    Signal(i32),
    /// End all that was started: politely, and after this time surely.
    End(Duration),
    /// Let go what was left running, and end.
    Release,
}

/// What a keeper tells toolq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Nothing runs; the system's error number.
    NotStarted(i32),
    /// The program has ended.
    Exited {
        /// How the program itself ended.
        ending: ProgramExit,
        /// Nothing that it started still runs.
        alone: bool,
    },
    /// Nothing that was started runs any more.
    Gone {
        /// How the program itself ended.
        ending: ProgramExit,
        /// How many had to be ended after the program itself had.
        leftovers: u32,
        /// Somebody could not be ended. The keeper leaves him to the root, and serves no more.
        leaves: bool,
    },
}

impl Request {
    /// As it is sent.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Start(order) => Self::start(order),
            Self::Signal(signal) => framed(b'K', |bytes| bytes.extend(signal.to_le_bytes())),
            Self::End(grace) => {
                let ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                framed(b'E', |bytes| bytes.extend(ms.to_le_bytes()))
            }
            Self::Release => framed(b'R', |_| ()),
        }
    }

    /// The request to start what is only borrowed.
    pub fn start(order: &Order) -> Vec<u8> {
        framed(b'S', |bytes| write_order(order, bytes))
    }

    fn parse(kind: u8, body: &[u8]) -> Option<Self> {
        Some(match kind {
            b'S' => Self::Start(Box::new(read_order(body)?)),
            b'K' => Self::Signal(i32::from_le_bytes(body.try_into().ok()?)),
            b'E' => Self::End(Duration::from_millis(u64::from_le_bytes(
                body.try_into().ok()?,
            ))),
            b'R' => Self::Release,
            _ => return None,
        })
    }

    /// Waits for the next request and the descriptors that come with it; none where the other side is gone.
    pub(crate) fn receive(mut socket: &UnixStream) -> io::Result<Option<(Self, Vec<OwnedFd>)>> {
        let mut head = [0; HEAD];
        let (read, descriptors) = receive_with(socket, &mut head)?;
        if read == 0 {
            return Ok(None);
        }
        socket.read_exact(&mut head[read..])?;
        let [length @ .., kind] = head;
        let mut body = Vec::new();
        socket
            .take(u32::from_le_bytes(length).into())
            .read_to_end(&mut body)?;
        let request = Self::parse(kind, &body).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some((request, descriptors)))
    }
}

/// A body with its head.
fn framed(kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    write(&mut bytes);
    // The system takes far less for the arguments of a program than a length of four bytes can say.
    let length = u32::try_from(bytes.len() - HEAD).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4] = kind;
    bytes
}

/// `ResourceLimits` and the number of arguments, then all strings, each ended by its NUL.
fn write_order(order: &Order, bytes: &mut Vec<u8>) {
    let ResourceLimits {
        cpu,
        memory,
        files,
        processes,
        file_size,
    } = order.limits;
    let cpu = cpu.map(|cpu| cpu.as_secs());
    for limit in [cpu, memory, files, processes, file_size] {
        bytes.extend(limit.unwrap_or(NONE).to_le_bytes());
    }
    bytes.extend((order.argv.len() as u64).to_le_bytes());
    let strings = [&order.path, &order.cwd]
        .into_iter()
        .chain(&order.argv)
        .chain(&order.env);
    strings.for_each(|string| bytes.extend(string.as_bytes_with_nul()));
}

fn read_order(body: &[u8]) -> Option<Order> {
    let (numbers, strings) = body.split_first_chunk::<48>()?;
    let mut numbers = numbers
        .as_chunks::<8>()
        .0
        .iter()
        .copied()
        .map(u64::from_le_bytes);
    let mut limit = || numbers.next().filter(|limit| *limit != NONE);
    let limits = ResourceLimits {
        cpu: limit().map(Duration::from_secs),
        memory: limit(),
        files: limit(),
        processes: limit(),
        file_size: limit(),
    };
    let arguments = usize::try_from(limit()?).ok()?;
    let strings = strings.split_inclusive(|byte| *byte == 0);
    let mut strings = strings
        .map_while(|text| CStr::from_bytes_with_nul(text).ok())
        .map(CStr::to_owned);
    Some(Order {
        path: strings.next()?,
        cwd: strings.next()?,
        argv: strings.by_ref().take(arguments).collect(),
        env: strings.collect(),
        limits,
    })
}

impl Reply {
    pub(crate) fn bytes(self) -> [u8; REPLY] {
        let (kind, ending, number, leaves) = match self {
            Self::NotStarted(errno) => (b'N', ProgramExit::Code(errno), 0, false),
            Self::Exited { ending, alone } => (b'X', ending, u32::from(alone), false),
            Self::Gone {
                ending,
                leftovers,
                leaves,
            } => (b'G', ending, leftovers, leaves),
        };
        let (tag, code) = match ending {
            ProgramExit::Signal(signal) => (1, signal),
            ProgramExit::LimitExceeded(ExceededLimit::Cpu) => (2, 0),
            ProgramExit::LimitExceeded(ExceededLimit::FileSize) => (3, 0),
            ProgramExit::LimitExceeded(ExceededLimit::Processes) => (4, 0),
            ProgramExit::Code(code) => (0, code),
        };
        let mut bytes = [0; REPLY];
        (bytes[0], bytes[1], bytes[2]) = (kind, tag, leaves.into());
        bytes[4..8].copy_from_slice(&code.to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// None where it is no reply of a keeper's.
    pub(crate) fn parse(bytes: [u8; REPLY]) -> Option<Self> {
        let [kind, tag, leaves, _, code @ .., a, b, c, d] = bytes;
        let (code, number) = (i32::from_le_bytes(code), u32::from_le_bytes([a, b, c, d]));
        let ending = match tag {
            0 => ProgramExit::Code(code),
            1 => ProgramExit::Signal(code),
            2 => ProgramExit::LimitExceeded(ExceededLimit::Cpu),
            3 => ProgramExit::LimitExceeded(ExceededLimit::FileSize),
            4 => ProgramExit::LimitExceeded(ExceededLimit::Processes),
            _ => return None,
        };
        Some(match kind {
            b'N' => Self::NotStarted(code),
            b'X' => Self::Exited {
                ending,
                alone: number == 1,
            },
            b'G' => Self::Gone {
                ending,
                leftovers: number,
                leaves: leaves == 1,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsFd as _;

    use crate::fd_passing::send_with;

    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_given() {
        let text = |text: &str| CString::new(text).unwrap();
        let order = Order {
            path: text("/bin/cat"),
            cwd: text("/"),
            argv: vec![text("cat"), text(""), text("a b\n")],
            env: vec![text("A="), text("B=\u{e9}")],
            limits: ResourceLimits {
                files: Some(0),
                cpu: Some(Duration::from_secs(3)),
                ..ResourceLimits::default()
            },
        };
        let (told, heard) = UnixStream::pair().unwrap();
        let bytes = Request::Start(Box::new(order)).bytes();
        assert_eq!(
            send_with(&told, &bytes, &[told.as_fd()]).unwrap(),
            bytes.len()
        );
        let (request, descriptors) = Request::receive(&heard).unwrap().unwrap();
        assert_eq!(request.bytes(), bytes);
        assert_eq!(descriptors.len(), 1);
        drop((told, descriptors));
        assert!(Request::receive(&heard).unwrap().is_none());
    }

    #[test]
    fn a_reply_arrives_as_it_was_given() {
        let endings = [
            ProgramExit::Code(255),
            ProgramExit::Signal(9),
            ProgramExit::LimitExceeded(ExceededLimit::Cpu),
        ];
        let gone = endings.map(|ending| Reply::Gone {
            ending,
            leftovers: 70_000,
            leaves: ending == ProgramExit::Signal(9),
        });
        let exited = endings.map(|ending| Reply::Exited {
            ending,
            alone: true,
        });
        for reply in gone
            .into_iter()
            .chain(exited)
            .chain([Reply::NotStarted(13)])
        {
            assert_eq!(Reply::parse(reply.bytes()), Some(reply));
        }
    }
}
