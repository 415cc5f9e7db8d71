//! Servers that are killed and started again on the same ports, with the same stores.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::nats_server::{program, say_skipped};

const SERVERS: usize = 3;
/// Each server keeps a copy of the queue.
pub const REPLICAS: &str = "3";

/// A group of servers with one JetStream.
pub struct Cluster {
    servers: Vec<ClusterServer>,
    dir: TempDir,
}

struct ClusterServer {
    port: u16,
    config: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

/// Returns a port that no process listens on. If another process takes it before the server does, the server doesn't start.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Cluster {
    /// Starts the servers. Returns `None`, and says so, if nats-server isn't installed.
    pub fn start() -> Option<Self> {
        if Command::new(program()).arg("--version").output().is_err() {
            say_skipped();
            return None;
        }
        let dir = TempDir::new().unwrap();
        let ports: Vec<(u16, u16)> = (0..SERVERS).map(|_| (free_port(), free_port())).collect();
        let routes: Vec<String> = ports
            .iter()
            .map(|(_, route)| format!("nats://127.0.0.1:{route}"))
            .collect();
        let servers = ports.iter().enumerate().map(|(number, (port, route))| {
            let store = dir.path().join(format!("store{number}"));
            // Clients are to know the links that faults hold, and no others.
            let cluster = format!(
                "cluster {{ name: faults, listen: \"127.0.0.1:{route}\", no_advertise: true, routes: [{}] }}\n",
                routes.join(", ")
            );
            let config = format!(
                "server_name: s{number}\nlisten: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n{cluster}",
                store.display()
            );
            let path = dir.path().join(format!("s{number}.conf"));
            fs::write(&path, config).unwrap();
            ClusterServer {
                port: *port,
                config: path,
                log: dir.path().join(format!("s{number}.log")),
                child: None,
            }
        });
        let mut cluster = Self {
            servers: servers.collect(),
            dir,
        };
        for number in 0..SERVERS {
            cluster.start_server(number);
        }
        Some(cluster)
    }

    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|server| server.port).collect()
    }

    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns the addresses of all servers, for programs that no fault keeps from them.
    pub fn urls(&self) -> String {
        let urls = self
            .ports()
            .into_iter()
            .map(|port| format!("nats://127.0.0.1:{port}"));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Returns the directory with what the servers have logged and stored.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn kill_all(&mut self) {
        for number in 0..self.servers.len() {
            self.kill_server(number);
        }
    }

    /// Kills a server.
    pub fn kill_server(&mut self, number: usize) {
        if let Some(mut child) = self.servers[number].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts a server that isn't running.
    pub fn start_server(&mut self, number: usize) {
        let server = &mut self.servers[number];
        if server.child.is_some() {
            return;
        }
        let child = Command::new(program())
            .arg("--config")
            .arg(&server.config)
            .arg("--log")
            .arg(&server.log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        server.child = Some(child.unwrap());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_all();
    }
}
