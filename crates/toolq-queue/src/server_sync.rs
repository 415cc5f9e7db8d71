//! When the server writes to its disk what it has confirmed.

use std::time::Duration;

use async_nats::Client;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

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
