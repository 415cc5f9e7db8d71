//! A server on a bare socket, so that it can do what no HTTP server should.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use toolq_core::types::HttpMethod;

use crate::support::engine_turn::{TestCall, http_call};

/// What the server does with one connection.
#[derive(Clone)]
pub enum ServerBehavior {
    /// Reads the request, writes this, and closes.
    Respond(Vec<u8>),
    /// Reads the request, writes this, and neither writes more nor closes.
    Hang(Vec<u8>),
    /// Reads the request, and writes this one byte every 20 ms.
    Drip(Vec<u8>),
    /// Reads the request, writes the first bytes once and then the second forever.
    Repeat(Vec<u8>, Vec<u8>),
    /// Reads the request, writes this, and closes as soon as it has read another one.
    CloseKept(Vec<u8>),
    /// Reads nothing, writes this, and closes with a reset.
    Reset(Vec<u8>),
    /// Accepts the connection, and does nothing.
    Ignore,
}

impl ServerBehavior {
    pub fn respond(response: &str) -> Self {
        Self::Respond(response.into())
    }

    pub fn hang(response: &str) -> Self {
        Self::Hang(response.into())
    }

    pub fn reset() -> Self {
        Self::Reset(Vec::new())
    }
}

/// A server on loopback. The n-th connection gets the n-th behavior; further connections get the last one.
pub struct FaultyServer {
    pub url: String,
    log: Arc<ServerLog>,
}

#[derive(Default)]
struct ServerLog {
    /// The requests, verbatim.
    requests: Mutex<Vec<String>>,
    /// How many bytes the server has written.
    bytes_written: AtomicU64,
}

impl FaultyServer {
    pub fn new(behaviors: &[ServerBehavior]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(ServerLog::default());
        let (behaviors, shared_log) = (behaviors.to_vec(), Arc::clone(&log));
        thread::spawn(move || {
            for (index, stream) in listener.incoming().enumerate() {
                let behavior = behaviors.get(index).or(behaviors.last()).cloned().unwrap();
                let log = Arc::clone(&shared_log);
                // Clients may abort the connection, so errors are ignored.
                thread::spawn(move || drop(log.run_behavior(&behavior, stream.unwrap())));
            }
        });
        Self { url, log }
    }

    pub fn responding_with(response: &str) -> Self {
        Self::new(&[ServerBehavior::respond(response)])
    }

    /// Returns the requests that arrived completely. Each counts as one effect on the server.
    pub fn requests(&self) -> Vec<String> {
        self.log.requests.lock().unwrap().clone()
    }

    /// Returns how many bytes the server has written so far.
    pub fn bytes_written(&self) -> u64 {
        self.log.bytes_written.load(Ordering::Relaxed)
    }

    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    pub fn get_call(&self, path: &str) -> TestCall {
        http_call(HttpMethod::Get, &format!("{}{path}", self.url))
    }

    pub fn post_call(&self) -> TestCall {
        http_call(HttpMethod::Post, &self.url).body(r#"{"n":1.00}"#)
    }
}

impl ServerLog {
    fn run_behavior(
        &self,
        behavior: &ServerBehavior,
        mut stream: TcpStream,
    ) -> std::io::Result<()> {
        if !matches!(behavior, ServerBehavior::Reset(_) | ServerBehavior::Ignore) {
            let request = read_request(&mut stream)?;
            self.requests.lock().unwrap().push(request);
        }
        match behavior {
            ServerBehavior::Respond(bytes) => self.write(&mut stream, bytes),
            ServerBehavior::Hang(bytes) => {
                self.write(&mut stream, bytes)?;
                wait_for_client_to_close(&mut stream)
            }
            ServerBehavior::Drip(bytes) => bytes.iter().try_for_each(|byte| {
                thread::sleep(Duration::from_millis(20));
                self.write(&mut stream, &[*byte])
            }),
            ServerBehavior::Repeat(head, repeated) => {
                self.write(&mut stream, head)?;
                loop {
                    self.write(&mut stream, repeated)?;
                }
            }
            ServerBehavior::CloseKept(bytes) => {
                self.write(&mut stream, bytes)?;
                let request = read_request(&mut stream)?;
                let complete = Some(request).filter(|request| !request.is_empty());
                self.requests.lock().unwrap().extend(complete);
                Ok(())
            }
            ServerBehavior::Reset(bytes) => {
                // Closing a socket with unread bytes resets the connection.
                stream.peek(&mut [0])?;
                self.requests.lock().unwrap().push(String::new());
                self.write(&mut stream, bytes)
            }
            ServerBehavior::Ignore => loop {
                thread::park();
            },
        }
    }

    fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        stream.write_all(bytes)?;
        self.bytes_written
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

fn wait_for_client_to_close(stream: &mut TcpStream) -> std::io::Result<()> {
    std::io::copy(stream, &mut std::io::sink()).map(drop)
}

fn read_request(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut request, mut byte) = (String::new(), [0]);
    while !request.ends_with("\r\n\r\n") && stream.read(&mut byte)? > 0 {
        request.push(byte[0].into());
    }
    let length = request
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    Ok(request + &String::from_utf8(body).unwrap())
}

/// Returns a response whose `content-length` matches its body. `head` is the status and optional headers.
pub fn http_response(head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
