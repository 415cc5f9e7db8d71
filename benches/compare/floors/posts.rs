//! The least that HTTP requests can cost: 64 connections that hyper keeps open, with one request at a time on each.
//!
//! No pool, no timeouts, no redirects, and no limit on bodies. Responses are printed in the order of the lines.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Result;

const CONNECTIONS: usize = 64;

/// The position of a line in the file, and the body of its response.
type LineResponse = (usize, Bytes);
/// Why a task failed.
type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// Posts each line of `lines` to the server at `address`.
///
/// # Errors
/// A connection fails, or a response's status isn't a success.
pub fn run(address: SocketAddr, lines: &Path) -> Result<()> {
    let lines: Arc<[Bytes]> = fs::read_to_string(lines)?
        .lines()
        .map(|line| Bytes::from(line.to_owned()))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let responses = runtime
        .block_on(post_all(address, lines))
        .map_err(|error| error.to_string())?;
    let mut stdout = io::stdout().lock();
    for (_, body) in responses {
        stdout.write_all(&body)?;
        stdout.write_all(b"\n")?;
    }
    Ok(())
}

async fn post_all(
    address: SocketAddr,
    lines: Arc<[Bytes]>,
) -> std::result::Result<Vec<LineResponse>, TaskError> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        connections.spawn(post_on_connection(
            address,
            Arc::clone(&lines),
            Arc::clone(&next),
        ));
    }
    let mut responses = Vec::with_capacity(lines.len());
    while let Some(result) = connections.join_next().await {
        responses.extend(result??);
    }
    responses.sort_unstable_by_key(|(line, _)| *line);
    Ok(responses)
}

/// Opens a connection and posts lines on it until there are no more.
async fn post_on_connection(
    address: SocketAddr,
    lines: Arc<[Bytes]>,
    next: Arc<AtomicUsize>,
) -> std::result::Result<Vec<LineResponse>, TaskError> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let host = address.to_string();
    let mut responses = Vec::new();
    loop {
        let line = next.fetch_add(1, Ordering::Relaxed);
        let Some(body) = lines.get(line) else {
            return Ok(responses);
        };
        responses.push((line, post(&mut sender, &host, body.clone()).await?));
    }
}

async fn post(
    sender: &mut SendRequest<Full<Bytes>>,
    host: &str,
    body: Bytes,
) -> std::result::Result<Bytes, TaskError> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/notes")
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        return Err(format!("the server returned {}", response.status()).into());
    }
    Ok(response.into_body().collect().await?.to_bytes())
}
