//! What the server promises: when it writes to its disk what it has confirmed, and whether copies stay the same.

use std::time::Duration;

use async_nats::Client;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::queue::turn_queue::TurnQueue;

/// The first version with a setting for when to write.
const FIRST_WITH_SETTING: [u64; 3] = [2, 10, 0];
/// The first version that fixes two bugs that make the copies of a stream differ.
const FIRST_WITH_EQUAL_COPIES: [u64; 3] = [2, 9, 21];
/// How long to wait for the server to report its configuration. Most servers don't report it to ordinary users.
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

/// Finds out when the server writes to its disk. It reports its configuration only to users of its system account, and to
/// those of accounts that import `$SYS.REQ.SERVER.PING.JSZ` from there.
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
    parse_version(version) >= FIRST_WITH_SETTING
}

/// Returns what to say of a queue with several copies on the server of this connection, if that is known not to keep them equal.
pub(crate) fn copies_warning(queue: &TurnQueue, client: &Client) -> Option<String> {
    let version = client.server_info().version;
    let is_risky = queue.is_replicated() && parse_version(&version) < FIRST_WITH_EQUAL_COPIES;
    is_risky.then(|| {
        format!(
            "the copies of a queue may come to differ on nats-server {version}, so that calls are lost or answers repeated, if its servers are killed; use one copy, or servers of 2.15"
        )
    })
}

fn parse_version(version: &str) -> [u64; 3] {
    let mut parts = version.split('.').map(|part| {
        let end = part.find(|letter: char| !letter.is_ascii_digit());
        part[..end.unwrap_or(part.len())].parse().unwrap_or(0)
    });
    [(); 3].map(|()| parts.next().unwrap_or(0))
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

    #[test]
    fn servers_before_2_9_21_do_not_keep_copies_equal() {
        for version in ["2.9.10", "2.9.20", "2.8.99"] {
            assert!(
                parse_version(version) < FIRST_WITH_EQUAL_COPIES,
                "{version}"
            );
        }
        for version in ["2.9.21", "2.9.21-RC.1", "2.10.0", "2.15.1"] {
            assert!(
                parse_version(version) >= FIRST_WITH_EQUAL_COPIES,
                "{version}"
            );
        }
    }
}
