//! A real nats-server on loopback, with a store that is removed with it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::skip;
use crate::support::waiting::wait_until;

/// The program to start: `NATS_SERVER`, or the one in the `PATH`.
pub fn program() -> String {
    std::env::var("NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned())
}

/// Says that queues aren't tested.
pub fn say_skipped() {
    skip("there is no nats-server");
}

pub struct NatsServer {
    child: Child,
    pub url: String,
    /// The streams, removed with the server.
    _store: TempDir,
}

impl NatsServer {
    /// Starts a server with JetStream. Returns `None`, and says so, where there is no nats-server.
    pub fn start() -> Option<Self> {
        Self::start_with(&["--jetstream"])
    }

    /// Starts a server with these flags.
    pub fn start_with(flags: &[&str]) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let mut command = Command::new(program());
        command
            .args(["--addr", "127.0.0.1", "--port", "-1"])
            .args(flags)
            .arg("--store_dir")
            .arg(dir.path())
            .arg("--ports_file_dir")
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            say_skipped();
            return None;
        };
        let ports = dir.path().join(format!("nats-server_{}.ports", child.id()));
        let mut url = None;
        wait_until("the server listens", || {
            url = read_url(&ports);
            url.is_some()
        });
        Some(Self {
            child,
            url: url.unwrap(),
            _store: dir,
        })
    }
}

/// Returns the address that the server has written to its file, once the file is whole.
fn read_url(ports: &Path) -> Option<String> {
    let ports: Value = serde_json::from_str(&fs::read_to_string(ports).ok()?).ok()?;
    ports["nats"][0].as_str().map(str::to_owned)
}

impl NatsServer {
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
