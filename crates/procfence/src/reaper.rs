//! The process that starts programs, one call after another.

use std::io;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::Pid;

use crate::limits::ResourceLimits;
use crate::protocol::{Reply, Request};
use crate::reaper_call::{Call, Next};
use crate::signals::Signals;
use crate::spawn::{Order, spawn};
use crate::sys;

/// A keeper without a call.
pub(crate) struct Keeper {
    pub(crate) socket: UnixStream,
    pub(crate) signals: Signals,
}

impl Keeper {
    pub(crate) fn new(socket: UnixStream, signals: Signals) -> Self {
        Self { socket, signals }
    }

    /// Serves calls until the other side is gone.
    pub(crate) fn serve(self) -> io::Result<()> {
        while let Some((request, descriptors)) = Request::receive(&self.socket)? {
            // What was said of the last call, too late, means nothing.
            let Request::Start(order) = request else {
                continue;
            };
            match start(&order, &descriptors) {
                Err(errno) => self.reply(Reply::NotStarted(errno))?,
                Ok(program) => {
                    drop(descriptors);
                    let mut call = Call::new(&self, program, order.limits);
                    match call.serve() {
                        Ok(Next::Another) => {}
                        Ok(Next::Leave) => break,
                        Err(error) => return call.kill().and(Err(error)),
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn reply(&self, reply: Reply) -> io::Result<()> {
        (&self.socket).write_all(&reply.bytes())
    }
}

/// Starts a program.
///
/// # Errors
/// The operating system's error number. Then nothing ran.
fn start(order: &Order, descriptors: &[OwnedFd]) -> Result<Pid, i32> {
    let [stdin, stdout, stderr, status] = descriptors else {
        return Err(libc::EBADF);
    };
    let descriptors = [stdin, stdout, stderr, status].map(OwnedFd::as_fd);
    if order.limits == ResourceLimits::default() {
        spawn(order, &descriptors)
    } else {
        sys::start_limited(order, &descriptors)
    }
}
