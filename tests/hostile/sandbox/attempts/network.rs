//! Attempts to reach others over sockets.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::Path;

use crate::sandbox::attempts::AttemptResult;
use crate::sandbox::outside::Facts;
use crate::sandbox::system_calls::{call, check};

pub fn connect(port: u16) -> AttemptResult {
    TcpStream::connect(("127.0.0.1", port))?.write_all(b"x")?;
    Ok(())
}

pub fn bind(_: &Path, _: &Facts) -> AttemptResult {
    TcpListener::bind("127.0.0.1:0")?;
    Ok(())
}

/// Listens without having chosen a port, so that the system chooses one.
pub fn listen(_: &Path, _: &Facts) -> AttemptResult {
    let socket = open_socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    // SAFETY: this only takes numbers.
    check(unsafe { libc::listen(socket.as_raw_fd(), 1) }.into())?;
    Ok(())
}

pub fn send_datagram(_: &Path, facts: &Facts) -> AttemptResult {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.send_to(b"x", ("127.0.0.1", facts.port("udp")))?;
    Ok(())
}

pub fn connect_to_path(_: &Path, facts: &Facts) -> AttemptResult {
    UnixStream::connect(facts.text("unix"))?;
    Ok(())
}

pub fn connect_to_abstract_name(_: &Path, facts: &Facts) -> AttemptResult {
    let address = SocketAddr::from_abstract_name(facts.text("abstract"))?;
    UnixStream::connect_addr(&address)?;
    Ok(())
}

/// Opens a socket whose peers don't depend on addresses, such as the host of a virtual machine.
pub fn open_other_family(_: &Path, _: &Facts) -> AttemptResult {
    open_socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)?;
    Ok(())
}

pub fn open_unix_datagram(_: &Path, _: &Facts) -> AttemptResult {
    UnixDatagram::unbound()?;
    Ok(())
}

/// Sends to a socket that isn't the other one of the pair.
pub fn send_from_pair(_: &Path, facts: &Facts) -> AttemptResult {
    let (socket, _other) = UnixDatagram::pair()?;
    socket.send_to(b"x", facts.text("unix_datagram"))?;
    Ok(())
}

/// Begins a connection by sending data, without `connect`.
pub fn send_with_fast_open(_: &Path, facts: &Facts) -> AttemptResult {
    let socket = open_socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let address = loopback(facts.port("other_tcp"));
    // SAFETY: the address is as long as it says.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            b"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN,
            (&raw const address).cast(),
            16,
        )
    };
    check(sent as i64)?;
    Ok(())
}

/// Connects over a protocol that is like TCP to programs, and isn't to the kernel.
pub fn connect_with_other_protocol(_: &Path, facts: &Facts) -> AttemptResult {
    const MULTIPATH_TCP: i32 = 262;
    let socket = open_socket(libc::AF_INET, libc::SOCK_STREAM, MULTIPATH_TCP)?;
    let address = loopback(facts.port("other_tcp"));
    // SAFETY: the address is as long as it says.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), 16) }.into())?;
    Ok(())
}

/// Sends as a raw packet what TCP and UDP would refuse.
pub fn open_raw_socket(_: &Path, _: &Facts) -> AttemptResult {
    open_socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_UDP)?;
    Ok(())
}

/// Sets up a queue for requests that are no system calls.
pub fn set_up_io_uring(_: &Path, _: &Facts) -> AttemptResult {
    let mut parameters = [0_u64; 15];
    // SAFETY: the parameters are as large as the kernel's.
    let queue = unsafe {
        call(
            libc::SYS_io_uring_setup,
            [1, parameters.as_mut_ptr().addr(), 0, 0, 0],
        )
    };
    match queue {
        // Some systems disable it for all processes.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err("there is none".into()),
        queue => Ok(queue.map(drop)?),
    }
}

fn open_socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: this only takes numbers, and nothing else owns the descriptor.
    unsafe {
        let socket = libc::socket(family, kind, protocol);
        check(socket.into())?;
        Ok(OwnedFd::from_raw_fd(socket))
    }
}

fn loopback(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap(),
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes([127, 0, 0, 1]),
        },
        sin_zero: [0; 8],
    }
}
