//! Links between a worker and the servers, which can be held, held in one direction, or cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

/// What a link does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Passes them on.
    Open,
    /// Keeps them until it is open again, as TCP does when packets are lost.
    Held,
    /// Keeps those that come from servers.
    HeldFromServers,
    /// Closes all connections, and takes no new ones.
    Cut,
}

const STATES: [LinkState; 4] = [
    LinkState::Open,
    LinkState::Held,
    LinkState::HeldFromServers,
    LinkState::Cut,
];
/// How often a held connection checks whether it may continue.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The links of one worker to all servers.
#[derive(Clone)]
pub struct Link {
    state: Arc<AtomicU8>,
    ports: Vec<u16>,
}

impl Link {
    /// Opens links to servers on these ports.
    pub fn open(servers: &[u16]) -> Self {
        let state = Arc::new(AtomicU8::new(0));
        let ports = servers.iter().map(|server| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let (state, server) = (Arc::clone(&state), *server);
            // It ends with the test program.
            thread::spawn(move || accept_connections(&listener, server, &state));
            port
        });
        Self {
            ports: ports.collect(),
            state,
        }
    }

    pub fn urls(&self) -> String {
        let urls = self
            .ports
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"));
        urls.collect::<Vec<_>>().join(",")
    }

    pub fn set(&self, state: LinkState) {
        let number = STATES.iter().position(|other| *other == state).unwrap();
        self.state
            .store(u8::try_from(number).unwrap(), Ordering::SeqCst);
    }
}

fn state_of(state: &AtomicU8) -> LinkState {
    STATES[usize::from(state.load(Ordering::SeqCst))]
}

fn accept_connections(listener: &TcpListener, server: u16, state: &Arc<AtomicU8>) {
    for client in listener.incoming().flatten() {
        if state_of(state) == LinkState::Cut {
            continue;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
            continue;
        };
        let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (there, back) = (Arc::clone(state), Arc::clone(state));
        thread::spawn(move || pass_on(from_client, to_server, &there, false));
        thread::spawn(move || pass_on(server, client, &back, true));
    }
}

/// Passes bytes on until one side closes the connection, or the link is cut.
fn pass_on(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8, is_from_server: bool) {
    let mut buffer = vec![0; 64 << 10];
    from.set_read_timeout(Some(LOOK_INTERVAL * 5)).unwrap();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if is_timeout(&error) => 0,
            Err(_) => break,
        };
        let may_pass = |state: LinkState| match state {
            LinkState::Open | LinkState::Cut => true,
            LinkState::Held => false,
            LinkState::HeldFromServers => !is_from_server,
        };
        while read > 0 && !may_pass(state_of(state)) {
            thread::sleep(LOOK_INTERVAL);
        }
        if state_of(state) == LinkState::Cut || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
