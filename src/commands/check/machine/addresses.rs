//! Addresses that something has to listen at. A connection is opened and closed; nothing is sent.

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use url::Url;

use crate::commands::check::machine::missing::{MissingRequirement, RequirementKind};
use toolq_core::os::Environment;
use toolq_core::types::{Backing, PartialTemplate, Template, TemplatePart};

/// How long all connections together may take. Looking up a name has no limit of its own.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A host and its port, as in `example.com:443`.
type Address = String;

/// What became of connecting to addresses.
#[derive(Default)]
pub(super) struct AddressBook {
    failures: BTreeMap<Address, String>,
}

impl AddressBook {
    /// Connects to all addresses at the same time.
    pub(super) fn connect_to_all(addresses: impl Iterator<Item = Address>) -> Self {
        let unknown = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
        let mut failures: BTreeMap<Address, String> = addresses
            .map(|address| (address, unknown.clone()))
            .collect();
        let (sender, replies) = mpsc::channel();
        for address in failures.keys().cloned() {
            let sender = sender.clone();
            let connect = move || {
                let result = connect(&address).map_err(|error| error.to_string());
                // After the deadline, the receiver is gone.
                let _ = sender.send((address, result));
            };
            // Without a thread, the address counts as silent.
            let _ = thread::Builder::new().spawn(connect);
        }
        drop(sender);
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let left = || deadline.saturating_duration_since(Instant::now());
        while let Ok((address, result)) = replies.recv_timeout(left()) {
            match result {
                Ok(()) => failures.remove(&address),
                Err(why) => failures.insert(address, why),
            };
        }
        Self { failures }
    }

    /// Returns why an address can't be reached, if that is known.
    pub(super) fn find_failure(&self, address: &str) -> Option<MissingRequirement> {
        let why = self.failures.get(address)?;
        let message = format!("{address} can't be reached: {why}");
        let hint = "start what should listen there, or correct the address";
        let kind = RequirementKind::Address;
        Some(MissingRequirement::new(kind, address, message, hint))
    }
}

fn connect(address: &str) -> io::Result<()> {
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// Returns the address that a request or an agent needs, if no input decides it and all variables are set.
pub(super) fn tool_address(backing: &Backing, environment: &Environment) -> Option<Address> {
    match backing {
        Backing::Http(http) => url_address(http.proxy.as_ref().unwrap_or(&http.url), environment),
        Backing::Agent(agent) => url_address(&agent.endpoint, environment),
        Backing::Command(_) | Backing::Mcp(_) | Backing::Host | Backing::Builtin(_) => None,
    }
}

/// Returns the address of a URL up to its first value from an input.
pub(super) fn url_address(template: &Template, environment: &Environment) -> Option<Address> {
    let prefix = template.parts.iter().map_while(TemplatePart::as_segment);
    let prefix = PartialTemplate(prefix.collect());
    let url = Url::parse(&prefix.resolve(&|name| environment.get(name)).ok()?).ok()?;
    let port = url.port_or_known_default()?;
    Some(format!("{}:{port}", url.host_str()?))
}
