//! A socket that keeps every byte of every connection.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub struct Listener {
    pub authority: String,
    connections: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Listener {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(Mutex::default());
        let keeping: Arc<Mutex<Vec<Vec<u8>>>> = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let bytes = serve(stream.unwrap());
                keeping.lock().unwrap().push(bytes);
            }
        });
        Self {
            authority,
            connections,
        }
    }

    /// Everything that came, a connection each, in their order.
    pub fn connections(&self) -> Vec<Vec<u8>> {
        self.connections.lock().unwrap().clone()
    }
}

/// Answers the first request and keeps what comes until the client closes.
fn serve(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !is_whole(&bytes) {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).unwrap() {
            0 => return bytes,
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Whether a head is there, and the body that it announces.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    bytes.len() >= head.len() + 4 + length
}
