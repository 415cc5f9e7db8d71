//! When the server writes to its disk what it has confirmed.

use std::time::Duration;

use async_nats::Client;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

/// The first minor version of server 2 that can be told when to write.
const FIRST_WITH_SETTING: u64 = 10;
/// How long to wait for the server to tell its configuration. Most don't tell it to everybody.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// When the server writes to its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SyncMode {
    /// Before it confirms anything: `sync_interval: always`.
    Always,
    /// From time to time.
    Lazy,
    /// The server doesn't say.
    Unknown,
}

#[derive(Deserialize)]
struct JetStreamReply {
    data: JetStreamReport,
}

#[derive(Deserialize)]
struct JetStreamReport {
    config: JetStreamConfig,
}

#[derive(Deserialize)]
struct JetStreamConfig {
    #[serde(default)]
    sync_always: bool,
}

/// Finds out when the server writes to its disk. It tells its configuration only to users of its system account, and to those
/// of accounts that import `$SYS.REQ.SERVER.PING.JSZ` from there.
pub(super) async fn find_sync_mode(client: &Client) -> SyncMode {
    if !has_setting(&client.server_info().version) {
        return SyncMode::Lazy;
    }
    let request = client.request("$SYS.REQ.SERVER.PING.JSZ", "{\"config\":true}".into());
    let Ok(Ok(reply)) = timeout(ANSWER_TIME, request).await else {
        return SyncMode::Unknown;
    };
    match serde_json::from_slice::<JetStreamReply>(&reply.payload) {
        Ok(reply) if reply.data.config.sync_always => SyncMode::Always,
        Ok(_) => SyncMode::Lazy,
        Err(_) => SyncMode::Unknown,
    }
}

/// Returns whether a server of this version has the setting `sync_interval`.
fn has_setting(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    (major, minor) >= (2, FIRST_WITH_SETTING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_2_10_write_lazily() {
        for version in ["2.9.10", "2.1.0", "1.99.0"] {
            assert!(!has_setting(version), "{version}");
        }
        for version in ["2.10.0", "2.15.1-beta.1", "3.0.0"] {
            assert!(has_setting(version), "{version}");
        }
    }
}
