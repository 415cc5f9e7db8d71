//! `toolq queue submit`: publishes the open turns of inputs.

use crate::args::SubmitArguments as Arguments;
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::output::CommandError;
use crate::queue::{Submission, Submitter, TurnQueue};
use toolq_core::transcript::InputSource;
use toolq_core::types::Turn;
use toolq_log::combine_digests;

/// Publishes every turn that the queue doesn't have yet.
///
/// # Errors
/// tools.yaml or an input is invalid, or the queue doesn't take a turn.
pub(super) fn submit_turns(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let queue_name = parse_queue_name(&arguments.queue)?;
    let tools = context.load_tools()?;
    let inputs = files::open_inputs(&arguments.input, InputSource::with_digest)?;
    let paths = arguments.input.paths().into_iter();
    let paths = paths.map(|path| path.display().to_string());
    let session = NatsSession::begin(&arguments.nats, context)?;
    let submission = session.runtime.block_on(async {
        let replicas = arguments.replicas.get();
        let queue = TurnQueue::open_or_create(&session.client, &queue_name, replicas).await?;
        let mut submission = TurnSubmission {
            submitter: Submitter::new(queue, tools.digest.clone()),
            arguments,
        };
        for (path, input) in paths.zip(inputs) {
            submission.submit_input(&path, input).await?;
        }
        submission.submitter.finish().await
    })?;
    session.end();
    print_counts(submission, context);
    Ok(())
}

/// The turns of all inputs, on their way to the queue.
struct TurnSubmission<'a> {
    submitter: Submitter,
    arguments: &'a Arguments,
}

impl TurnSubmission<'_> {
    async fn submit_input(&mut self, path: &str, input: CommandInput) -> Result<(), CommandError> {
        match input {
            CommandInput::Recording(recording) => {
                let digest = self.name_input(recording.sha256());
                for index in 0..recording.len() {
                    let turn = recording.turn(index, self.arguments.input.all)?;
                    self.submit_turn(&turn, path, &digest).await?;
                }
            }
            CommandInput::Stream(mut stream) => {
                let (turns, broken) = stream.read_to_end();
                if let Some(error) = broken {
                    return Err(files::stream_failure(error, stream.message_count()));
                }
                let digest = self.name_input(&digest_turns(&turns));
                for turn in turns {
                    self.submit_turn(&turn, path, &digest).await?;
                }
            }
            CommandInput::Follow(_) => {}
        }
        Ok(())
    }

    /// A turn whose calls are all answered isn't open. One without calls is: its line is answered by an empty list.
    async fn submit_turn(
        &mut self,
        turn: &Turn,
        path: &str,
        digest: &str,
    ) -> Result<(), CommandError> {
        if turn.calls.is_empty() && turn.answered_count > 0 {
            return Ok(());
        }
        let form = self.arguments.to.map(Into::into);
        self.submitter.submit(turn, path, digest, form).await
    }

    /// With `--new`, the input gets a name that no other submission has.
    fn name_input(&self, digest: &str) -> String {
        if !self.arguments.new {
            return combine_digests([digest].into_iter());
        }
        let unique = toolq_engine::random_task_id();
        combine_digests([digest, &unique].into_iter())
    }
}

/// Digests turns in place of the bytes of a stream, which aren't kept.
fn digest_turns(turns: &[Turn]) -> String {
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let texts = calls.flat_map(|call| {
        let input = call.input.as_ref().map(toolq_core::json::Input::text);
        [call.id.as_str(), &*call.name, input.unwrap_or_default()]
    });
    combine_digests(texts)
}

fn print_counts(submission: Submission, context: &CommandContext) {
    let Submission { new, known } = submission;
    let turns = |count: usize| match count {
        1 => "1 turn".to_owned(),
        _ => format!("{count} turns"),
    };
    let known = match known {
        0 => String::new(),
        _ => format!(
            "; the queue had {} already (`--new` submits again)",
            turns(known)
        ),
    };
    let note = format!("{} submitted{known}", turns(new));
    context.stderr.print_note(&note);
}
