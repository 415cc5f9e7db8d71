//! How client and server agree on a version.
//!
//! A modern server answers `server/discover`. Any answer other than a modern error, or no answer for a while, means a
//! legacy server, which then gets an `initialize` on the same connection.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::client::ServerIdentity;
use crate::framing::Outbox;
use crate::message::RpcError;
use crate::protocol::{
    Implementation, ProtocolEra, ProtocolPreference, ProtocolVersion, or_default,
};

/// The id of `server/discover`.
pub(crate) const DISCOVER_ID: u64 = 0;
/// The id of `initialize`.
pub(crate) const INITIALIZE_ID: u64 = 1;

/// A handshake that hasn't ended.
#[derive(Debug)]
pub(crate) struct Handshake {
    preference: ProtocolPreference,
    client: Implementation,
    /// The revision that `initialize` named, once it was sent.
    initialized_with: Option<ProtocolVersion>,
    /// `server/discover` was sent last.
    is_probing: bool,
    /// Why the server has refused `initialize`. Where it refuses the modern era, too, this says more.
    refusal: Option<RpcError>,
}

/// What an answer means for the handshake.
#[derive(Debug)]
pub(crate) enum HandshakeStep {
    /// The next answer decides.
    Waiting,
    /// Both agree.
    Ready(ServerIdentity),
    /// They don't, for this reason.
    Failed(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    #[serde(rename = "_meta", default, deserialize_with = "or_default")]
    meta: Option<DiscoverMeta>,
}

#[derive(Deserialize)]
struct DiscoverMeta {
    #[serde(
        rename = "io.modelcontextprotocol/serverInfo",
        default,
        deserialize_with = "or_default"
    )]
    server_info: Option<Implementation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default, deserialize_with = "or_default")]
    server_info: Option<Implementation>,
}

impl Handshake {
    /// Begins a handshake.
    pub(crate) fn begin(
        preference: ProtocolPreference,
        client: Implementation,
        outbox: &mut Outbox,
    ) -> Self {
        let mut handshake = Self {
            preference,
            client,
            initialized_with: None,
            is_probing: false,
            refusal: None,
        };
        match preference {
            ProtocolPreference::Only(version) if version.era() == ProtocolEra::Legacy => {
                handshake.initialize(version, outbox);
            }
            ProtocolPreference::LegacyFirst => {
                handshake.initialize(ProtocolVersion::LATEST_LEGACY, outbox);
            }
            ProtocolPreference::Auto | ProtocolPreference::Only(_) => handshake.probe(outbox),
        }
        handshake
    }

    fn probe(&mut self, outbox: &mut Outbox) {
        self.is_probing = true;
        let meta = request_meta(ProtocolVersion::LATEST, &self.client);
        outbox.request(DISCOVER_ID, "server/discover", json!({"_meta": meta}));
    }

    /// Returns whether the modern era is being tried.
    pub(crate) fn is_probing(&self) -> bool {
        self.is_probing
    }

    /// Returns the client's name and version.
    pub(crate) fn client(&self) -> &Implementation {
        &self.client
    }

    /// Returns whether the legacy era is being tried.
    pub(crate) fn is_initializing(&self) -> bool {
        self.initialized_with.is_some()
    }

    /// Tries the legacy era, because the server has been silent for a while. An answer to `server/discover` that comes
    /// all the same still counts: a server may just be slow to start.
    pub(crate) fn give_up_probe(&mut self, outbox: &mut Outbox) {
        if self.preference == ProtocolPreference::Auto && !self.is_initializing() {
            self.initialize(ProtocolVersion::LATEST_LEGACY, outbox);
        }
    }

    fn initialize(&mut self, version: ProtocolVersion, outbox: &mut Outbox) {
        self.initialized_with = Some(version);
        self.is_probing = false;
        let params = json!({
            "protocolVersion": version.as_str(),
            "capabilities": {},
            "clientInfo": self.client,
        });
        outbox.request(INITIALIZE_ID, "initialize", params);
    }

    /// Takes the answer to `server/discover`.
    pub(crate) fn on_discover(
        &mut self,
        answer: Result<&RawValue, RpcError>,
        outbox: &mut Outbox,
    ) -> HandshakeStep {
        match answer {
            Ok(result) => match serde_json::from_str::<DiscoverResult>(result.get()) {
                Ok(result) => {
                    let server_info = result.meta.and_then(|meta| meta.server_info);
                    self.choose_version(&result.supported_versions, server_info, outbox)
                }
                // Some older servers answer every method that they don't know with an empty result.
                Err(_) if self.preference == ProtocolPreference::Auto => {
                    self.give_up_probe(outbox);
                    HandshakeStep::Waiting
                }
                Err(error) => HandshakeStep::Failed(unreadable("server/discover", &error)),
            },
            Err(error) if error.code == RpcError::UNSUPPORTED_PROTOCOL_VERSION => {
                self.choose_version(&error.supported_versions(), None, outbox)
            }
            Err(error) if error.is_modern() || self.preference != ProtocolPreference::Auto => {
                let error = self.refusal.take().unwrap_or(error);
                refused(&error)
            }
            Err(_) => {
                self.give_up_probe(outbox);
                HandshakeStep::Waiting
            }
        }
    }

    /// Takes the answer to `initialize`.
    pub(crate) fn on_initialize(
        &mut self,
        answer: Result<&RawValue, RpcError>,
        outbox: &mut Outbox,
    ) -> HandshakeStep {
        let result = match answer {
            Ok(result) => result,
            // The server is modern after all. Its answer to `server/discover` is still on its way.
            Err(error) if error.is_modern() && self.preference == ProtocolPreference::Auto => {
                return HandshakeStep::Waiting;
            }
            Err(error) => return self.initialize_with_older(error, outbox),
        };
        let result: InitializeResult = match serde_json::from_str(result.get()) {
            Ok(result) => result,
            Err(error) => return HandshakeStep::Failed(unreadable("initialize", &error)),
        };
        let version = ProtocolVersion::from_date(&result.protocol_version)
            .filter(|version| version.era() == ProtocolEra::Legacy);
        let Some(version) = version else {
            let wanted = ProtocolVersion::LATEST_LEGACY;
            return no_common_version(&result.protocol_version, wanted);
        };
        outbox.notification("notifications/initialized", None::<Value>);
        HandshakeStep::Ready(ServerIdentity {
            version,
            implementation: result.server_info,
        })
    }

    /// Tries an older revision, if the server has refused `initialize` because it only speaks older ones.
    fn initialize_with_older(&mut self, error: RpcError, outbox: &mut Outbox) -> HandshakeStep {
        let offered = error.supported_versions();
        let known = offered
            .iter()
            .filter_map(|date| ProtocolVersion::from_date(date));
        let older = known.filter(|version| Some(*version) < self.initialized_with);
        match older.max() {
            Some(version) => {
                self.initialize(version, outbox);
                HandshakeStep::Waiting
            }
            // It may have become modern since.
            None if self.preference == ProtocolPreference::LegacyFirst => {
                self.refusal = Some(error);
                self.probe(outbox);
                HandshakeStep::Waiting
            }
            None => refused(&error),
        }
    }

    /// Chooses the newest version that both sides know.
    fn choose_version(
        &mut self,
        offered: &[String],
        implementation: Option<Implementation>,
        outbox: &mut Outbox,
    ) -> HandshakeStep {
        let known = offered
            .iter()
            .filter_map(|date| ProtocolVersion::from_date(date));
        match known.max() {
            Some(version) if version.era() == ProtocolEra::Modern => {
                HandshakeStep::Ready(ServerIdentity {
                    version,
                    implementation,
                })
            }
            _ if self.preference == ProtocolPreference::Auto => {
                self.give_up_probe(outbox);
                HandshakeStep::Waiting
            }
            _ if offered.is_empty() => no_common_version("no version", ProtocolVersion::LATEST),
            _ => no_common_version(&offered.join(", "), ProtocolVersion::LATEST),
        }
    }
}

fn refused(error: &RpcError) -> HandshakeStep {
    HandshakeStep::Failed(format!("the server refused the handshake: {error}"))
}

fn no_common_version(offered: &str, wanted: ProtocolVersion) -> HandshakeStep {
    HandshakeStep::Failed(format!("the server speaks {offered}, not {wanted}"))
}

/// Says that an answer isn't one.
pub(crate) fn unreadable(method: &str, reason: &dyn fmt::Display) -> String {
    format!("the server's answer to {method} can't be read: {reason}")
}

// `_meta` of the client's requests.

/// What a call tells its server about itself. The server may ignore it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallMeta {
    /// The server may say how far the call is.
    pub wants_progress: bool,
    /// The key by which a server can tell a repeated call. The protocol doesn't define one.
    pub idempotency_key: Option<String>,
    /// The span of the call, by the W3C recommendation Trace Context.
    pub traceparent: Option<String>,
    /// What other systems keep in the trace of that span.
    pub tracestate: Option<String>,
}

/// Returns the `_meta` that every request of `version` carries.
pub(crate) fn request_meta(
    version: ProtocolVersion,
    client: &Implementation,
) -> Map<String, Value> {
    if version.era() == ProtocolEra::Legacy {
        return Map::new();
    }
    let members = [
        ("protocolVersion", json!(version.as_str())),
        ("clientInfo", json!(client)),
        ("clientCapabilities", json!({})),
    ];
    let members = members.map(|(key, value)| (format!("io.modelcontextprotocol/{key}"), value));
    Map::from_iter(members)
}
