//! Asks the servers of tools.yaml what they announce, for commands that run nothing else.

use std::sync::Arc;
use std::time::Duration;

use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::runtime::{build_runtime, new_call_setup};
use toolq_core::types::{ServerConfig, ToolsConfig};
use toolq_engine::{ServerAnnouncement, ServerLister};

/// What became of asking one server.
pub(crate) struct SurveyReply {
    pub(crate) server: Arc<ServerConfig>,
    /// What it announces and how long that took, or why nothing is known.
    pub(crate) result: Result<(Arc<ServerAnnouncement>, Duration), String>,
}

/// Asks `servers` at the same time, and ends them.
///
/// # Errors
/// The runtime can't be built.
pub(crate) fn survey_servers(
    servers: &[Arc<ServerConfig>],
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Vec<SurveyReply>, CommandError> {
    let settings = new_call_setup(Arc::clone(tools), None, context).engine_settings();
    let runtime = build_runtime(false)?;
    let lister = Arc::new(ServerLister::new(&settings));
    let questions = servers.iter().map(|server| {
        let (server, lister) = (Arc::clone(server), Arc::clone(&lister));
        runtime.spawn(async move {
            let result = lister.list(&server).await;
            SurveyReply { server, result }
        })
    });
    let questions: Vec<_> = questions.collect();
    let replies = runtime.block_on(async {
        let mut replies = Vec::new();
        for question in questions {
            // A panic has been reported.
            replies.extend(question.await.ok());
        }
        replies
    });
    lister.close();
    Ok(replies)
}
