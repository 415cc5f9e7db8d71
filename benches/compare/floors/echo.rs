//! A server that answers each POST at once with the body that it got: as little HTTP as that takes.
//!
//! Prints its address, then serves until it is killed. It understands requests with a `content-length`, nothing else.

use std::io::{self, Write as _};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Result;

/// Serves on a free port of the loopback interface.
///
/// # Errors
/// There is no such port, or nobody reads its address.
pub fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(io::stdout(), "{}", listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve(stream));
        }
    })
}

/// Answers request after request until the other side is gone.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut arrived = Vec::with_capacity(1 << 12);
    let mut answer = Vec::with_capacity(1 << 12);
    loop {
        let (head, length) = loop {
            match request(&arrived) {
                Some((head, length)) if arrived.len() >= head + length => break (head, length),
                _ if stream.read_buf(&mut arrived).await? == 0 => return Ok(()),
                _ => {}
            }
        };
        answer.clear();
        write!(
            answer,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n"
        )?;
        answer.extend_from_slice(&arrived[head..head + length]);
        stream.write_all(&answer).await?;
        arrived.drain(..head + length);
    }
}

/// How long the head of a request and its body are, in bytes, once the head is complete.
fn request(arrived: &[u8]) -> Option<(usize, usize)> {
    let head = arrived.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let length = str::from_utf8(&arrived[..head])
        .ok()?
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().ok())?
        });
    Some((head, length.unwrap_or(0)))
}
