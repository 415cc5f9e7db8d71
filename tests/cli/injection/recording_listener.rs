//! A server that records every byte of every connection.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub struct RecordingListener {
    pub authority: String,
    connections: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl RecordingListener {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(Mutex::default());
        let shared_connections: Arc<Mutex<Vec<Vec<u8>>>> = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let bytes = answer_and_record(stream.unwrap());
                shared_connections.lock().unwrap().push(bytes);
            }
        });
        Self {
            authority,
            connections,
        }
    }

    /// Returns the bytes received, one entry per connection, in order.
    pub fn connections(&self) -> Vec<Vec<u8>> {
        self.connections.lock().unwrap().clone()
    }
}

/// Answers the first request, then records everything until the client closes the connection.
fn answer_and_record(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !is_complete_request(&bytes) {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).unwrap() {
            0 => return bytes,
            length => bytes.extend_from_slice(&chunk[..length]),
        }
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns whether the head and the body that it announces have arrived.
fn is_complete_request(bytes: &[u8]) -> bool {
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
