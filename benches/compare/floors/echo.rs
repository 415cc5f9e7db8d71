//! A server that echoes the body of each POST immediately, with the least HTTP that this takes.
//!
//! It prints its address, then serves until it's killed. It only understands requests with a `content-length`.

use std::io::{self, Write as _};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Result;

/// Serves on a free port of the loopback interface.
///
/// # Errors
/// No port is available, or the address can't be printed.
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

/// Handles the requests of a connection until the client closes it.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(1 << 12);
    let mut response = Vec::with_capacity(1 << 12);
    loop {
        let (head, length) = loop {
            match parse_request(&received) {
                Some((head, length)) if received.len() >= head + length => break (head, length),
                _ if stream.read_buf(&mut received).await? == 0 => return Ok(()),
                _ => {}
            }
        };
        response.clear();
        write!(
            response,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n"
        )?;
        response.extend_from_slice(&received[head..head + length]);
        stream.write_all(&response).await?;
        received.drain(..head + length);
    }
}

/// Returns the lengths of a request's head and body in bytes, or `None` if the head is incomplete.
fn parse_request(received: &[u8]) -> Option<(usize, usize)> {
    let head = received.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let length = str::from_utf8(&received[..head])
        .ok()?
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().ok())?
        });
    Some((head, length.unwrap_or(0)))
}
