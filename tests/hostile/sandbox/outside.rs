//! What the programs try to reach: files, sockets, memory and a process outside of their sandbox.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::PLAY;
use crate::sandbox::system_calls::SharedMemory;

/// What the files outside contain.
pub const CANARY: &str = "canary";

/// Everything outside, and the working root beside it. Dropping it ends and removes everything.
pub struct Outside {
    dir: TempDir,
    victim: Child,
    /// Where the canary is in the memory of the victim.
    canary_address: u64,
    tcp: TcpListener,
    other_tcp: TcpListener,
    udp: UdpSocket,
    _unix: UnixListener,
    _unix_datagram: UnixDatagram,
    _abstract: UnixListener,
    memory: SharedMemory,
}

impl Outside {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        // The setuid program is reached as another user.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["root", "outside"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("root/notes.txt"), "notes").unwrap();
        let (victim, canary_address) = start_victim();
        let address = SocketAddr::from_abstract_name(abstract_name(&dir)).unwrap();
        let outside = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            other_tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _unix: UnixListener::bind(dir.path().join("outside/socket")).unwrap(),
            _unix_datagram: UnixDatagram::bind(dir.path().join("outside/datagrams")).unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            memory: SharedMemory::create(CANARY.as_bytes()).unwrap(),
            victim,
            canary_address,
            dir,
        };
        let facts = outside.facts().to_string();
        fs::write(outside.root().join("facts.json"), facts).unwrap();
        outside
    }

    /// Returns the working root.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// Returns a port that something listens to.
    pub fn tcp_port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    /// Creates the files that one attempt tries to reach. Returns their directory.
    pub fn prepare(&self, name: &str) -> PathBuf {
        let directory = self.dir.path().join("outside").join(name);
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::write(directory.join("canary"), CANARY).unwrap();
        let script = directory.join("script");
        fs::write(&script, "#!/bin/sh\necho canary\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        directory
    }

    fn facts(&self) -> Value {
        json!({
            "victim": self.victim.id(),
            "canary_address": self.canary_address,
            "tcp": self.tcp_port(),
            "other_tcp": self.other_tcp.local_addr().unwrap().port(),
            "udp": self.udp.local_addr().unwrap().port(),
            "unix_datagram": self.dir.path().join("outside/datagrams"),
            "memory_number": self.memory.id,
            "unix": self.dir.path().join("outside/socket"),
            "abstract": abstract_name(&self.dir),
            "memory": self.memory.key,
        })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// What the programs know about the outside.
pub struct Facts(Value);

impl Facts {
    /// Reads the facts from the current directory, the working root.
    pub fn read() -> Self {
        Self(serde_json::from_slice(&fs::read("facts.json").unwrap()).unwrap())
    }

    pub fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap()
    }

    pub fn port(&self, name: &str) -> u16 {
        self.number(name).try_into().unwrap()
    }

    pub fn victim(&self) -> i32 {
        self.number("victim").try_into().unwrap()
    }

    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap()
    }
}

fn abstract_name(dir: &TempDir) -> String {
    let name = dir.path().file_name().unwrap().to_string_lossy();
    format!("toolq-sandbox-test-{name}")
}

/// Starts a process of the same user. Returns it with the address of the canary in its memory.
fn start_victim() -> (Child, u64) {
    let program = std::env::current_exe().unwrap();
    let mut victim = Command::new(program)
        .args([PLAY, "victim"])
        .env("SECRET", CANARY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = victim.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    (victim, line.trim().parse().unwrap())
}

/// Prints the address of a canary, and waits until stdin is closed.
pub fn play_victim() {
    let canary = CANARY.to_owned();
    println!("{}", canary.as_ptr().addr());
    io::stdout().flush().unwrap();
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    drop(canary);
}
