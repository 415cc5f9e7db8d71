//! A server made of a socket and nothing else, so that it can do what no server should.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use toolq_core::types::HttpMethod;

use crate::scene::{Asked, http};

/// What the server does with one connection.
#[derive(Clone)]
pub enum Act {
    /// Reads the request, writes this, and closes.
    Say(Vec<u8>),
    /// Reads the request, writes this, and neither writes more nor closes.
    Hang(Vec<u8>),
    /// Reads the request, and writes this byte by byte, one each 20 ms.
    Drip(Vec<u8>),
    /// Reads the request, writes the first and then the second again and again.
    Repeat(Vec<u8>, Vec<u8>),
    /// Reads nothing, writes this, and closes with a reset.
    Reset(Vec<u8>),
    /// Accepts, and does nothing at all.
    Ignore,
}

impl Act {
    pub fn say(response: &str) -> Self {
        Self::Say(response.into())
    }

    pub fn hang(response: &str) -> Self {
        Self::Hang(response.into())
    }

    pub fn reset() -> Self {
        Self::Reset(Vec::new())
    }
}

/// A server on loopback that does one act a connection, the last one for ever.
pub struct Server {
    pub url: String,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    /// The requests as they came.
    heard: Mutex<Vec<String>>,
    /// Bytes that were written.
    said: AtomicU64,
}

impl Server {
    pub fn new(acts: &[Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Log::default());
        let (acts, keeping) = (acts.to_vec(), Arc::clone(&log));
        thread::spawn(move || {
            for (index, stream) in listener.incoming().enumerate() {
                let act = acts.get(index).or(acts.last()).cloned().unwrap();
                let log = Arc::clone(&keeping);
                // What the client breaks off is no fault of the server's.
                thread::spawn(move || drop(log.perform(&act, stream.unwrap())));
            }
        });
        Self { url, log }
    }

    pub fn saying(response: &str) -> Self {
        Self::new(&[Act::say(response)])
    }

    /// The requests that came whole; each had its effect.
    pub fn heard(&self) -> Vec<String> {
        self.log.heard.lock().unwrap().clone()
    }

    /// Bytes that were written so far.
    pub fn said(&self) -> u64 {
        self.log.said.load(Ordering::Relaxed)
    }

    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    pub fn get(&self, path: &str) -> Asked {
        http(HttpMethod::Get, &format!("{}{path}", self.url))
    }

    pub fn post(&self) -> Asked {
        http(HttpMethod::Post, &self.url).body(r#"{"n":1.00}"#)
    }
}

impl Log {
    fn perform(&self, act: &Act, mut stream: TcpStream) -> std::io::Result<()> {
        if !matches!(act, Act::Reset(_) | Act::Ignore) {
            let request = read_request(&mut stream)?;
            self.heard.lock().unwrap().push(request);
        }
        match act {
            Act::Say(bytes) => self.write(&mut stream, bytes),
            Act::Hang(bytes) => {
                self.write(&mut stream, bytes)?;
                wait_for_end(&mut stream)
            }
            Act::Drip(bytes) => bytes.iter().try_for_each(|byte| {
                thread::sleep(Duration::from_millis(20));
                self.write(&mut stream, &[*byte])
            }),
            Act::Repeat(head, again) => {
                self.write(&mut stream, head)?;
                loop {
                    self.write(&mut stream, again)?;
                }
            }
            Act::Reset(bytes) => {
                // Closing with unread bytes resets the connection.
                stream.peek(&mut [0])?;
                self.heard.lock().unwrap().push(String::new());
                self.write(&mut stream, bytes)
            }
            Act::Ignore => loop {
                thread::park();
            },
        }
    }

    fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        stream.write_all(bytes)?;
        self.said.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

fn wait_for_end(stream: &mut TcpStream) -> std::io::Result<()> {
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

/// A response with the length of its body.
pub fn response(head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
