//! The outputs of a conversation that were cut, for `read_output`. Models name them by the ids of calls, never by paths, and each
//! conversation knows only its own: the turns of an input, those of one agent, or the calls of one client.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use toolq_core::types::{Backing, BuiltinTool, CallRef, Outcome, OutputUnavailable, Tool};

/// How many calls of a conversation are remembered. Of older ones, nothing can be read.
const MAX_CALLS: usize = 10_000;
/// The longest id by which an output can be read, in bytes.
const MAX_ID_BYTES: usize = 256;
/// How many ids are listed for a model that named another one.
const MAX_LISTED_IDS: usize = 20;

/// What is known of the outputs of one conversation. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ConversationOutputs(Arc<Mutex<OutputIndex>>);

#[derive(Debug, Default)]
struct OutputIndex {
    outputs: HashMap<Arc<str>, OutputState>,
    /// In the order in which the calls ended.
    ids: VecDeque<Arc<str>>,
}

/// What is left of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OutputState {
    /// The result of the call has all of it.
    Whole,
    /// It was cut, and the rest is lost.
    Lost,
    /// It was cut, and a file has it.
    Kept(KeptOutput),
}

/// A file with an output that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptOutput {
    pub(crate) path: PathBuf,
    /// Whether the file has only the beginning.
    pub(crate) is_partial: bool,
}

impl ConversationOutputs {
    /// Remembers what is left of the output of a call that has ended. `output_dir` is where outputs are kept. Returns whether
    /// `read_output` finds more of it than the result has.
    pub(crate) fn note_end(
        &self,
        call: &CallRef,
        tool: Option<&Tool>,
        outcome: &Outcome,
        output_dir: Option<&Path>,
    ) -> bool {
        // A page of `read_output` isn't an output of its own. Since ids may repeat, it must not replace one.
        let is_page = tool.is_some_and(|tool| {
            matches!(
                tool.backing,
                Some(Backing::Builtin(BuiltinTool::ReadOutput))
            )
        });
        if is_page || call.tool_use_id.len() > MAX_ID_BYTES {
            return false;
        }
        let state = output_state(tool, outcome, output_dir);
        let is_kept = matches!(state, OutputState::Kept(_));
        let id: Arc<str> = call.tool_use_id.as_str().into();
        let mut index = self.0.lock();
        // An id that is used again means the later call.
        if index.outputs.insert(Arc::clone(&id), state).is_some() {
            index.ids.retain(|other| *other != id);
        }
        index.ids.push_back(id);
        if index.ids.len() > MAX_CALLS
            && let Some(oldest) = index.ids.pop_front()
        {
            index.outputs.remove(&oldest);
        }
        is_kept
    }

    /// Returns the file with the output of a call.
    ///
    /// # Errors
    /// There is no such file.
    pub(crate) fn find(&self, id: &str) -> Result<KeptOutput, OutputUnavailable> {
        let index = self.0.lock();
        let id = || id.to_owned();
        match index.outputs.get(&*id()) {
            Some(OutputState::Kept(kept)) => Ok(kept.clone()),
            Some(OutputState::Whole) => Err(OutputUnavailable::NotCut { id: id() }),
            Some(OutputState::Lost) => Err(OutputUnavailable::NotKept { id: id() }),
            None => {
                let (known, more) = index.kept_ids();
                let id = id();
                Err(OutputUnavailable::UnknownId { id, known, more })
            }
        }
    }
}

impl OutputIndex {
    /// Returns the ids of the latest outputs that can be read, in order, and how many there are before them.
    fn kept_ids(&self) -> (Vec<String>, usize) {
        let is_kept = |id: &&Arc<str>| matches!(self.outputs.get(*id), Some(OutputState::Kept(_)));
        let kept: Vec<&Arc<str>> = self.ids.iter().filter(is_kept).collect();
        let more = kept.len().saturating_sub(MAX_LISTED_IDS);
        let listed = kept[more..].iter().map(ToString::to_string);
        (listed.collect(), more)
    }
}

fn output_state(tool: Option<&Tool>, outcome: &Outcome, output_dir: Option<&Path>) -> OutputState {
    let is_partial = |total_bytes| tool.is_none_or(|tool| total_bytes > tool.max_saved);
    if let Outcome::Restored(restored) = outcome {
        let Some(cut) = &restored.cut_output else {
            return OutputState::Whole;
        };
        let file_name = cut.file_name.as_deref().map(Path::new);
        // Only files in the directory of this log: what the log says about others is no reason to open them.
        let file_name = file_name.and_then(Path::file_name);
        return match (output_dir, file_name) {
            (Some(dir), Some(name)) => OutputState::Kept(KeptOutput {
                path: dir.join(name),
                is_partial: is_partial(cut.total_bytes),
            }),
            _ => OutputState::Lost,
        };
    }
    match outcome.captured() {
        Some(captured) if captured.cut_bytes > 0 => match &captured.saved_path {
            Some(path) => OutputState::Kept(KeptOutput {
                path: path.to_path_buf(),
                is_partial: is_partial(captured.total_bytes),
            }),
            None => OutputState::Lost,
        },
        _ => OutputState::Whole,
    }
}

#[cfg(test)]
mod tests {
    use toolq_testing::{sample_call, sample_tool, success_outcome};

    use super::*;

    fn end_call(outputs: &ConversationOutputs, id: &str, outcome: &Outcome) -> bool {
        let mut call = sample_call(0, "t", "{}");
        id.clone_into(&mut call.id);
        let call = CallRef::new(&call, None);
        outputs.note_end(&call, Some(&sample_tool("t")), outcome, None)
    }

    fn cut_outcome(path: Option<&str>) -> Outcome {
        let mut outcome = success_outcome("cut");
        let captured = outcome.captured_mut().unwrap();
        captured.cut_bytes = 1;
        captured.saved_path = path.map(|path| Box::new(path.into()));
        outcome
    }

    #[test]
    fn an_output_is_known_by_the_latest_call_with_its_id_and_memory_is_bounded() {
        let outputs = ConversationOutputs::default();
        assert!(!end_call(&outputs, "whole", &success_outcome("")));
        assert!(!end_call(&outputs, "lost", &cut_outcome(None)));
        assert!(end_call(&outputs, "kept", &cut_outcome(Some("/1.txt"))));
        assert!(!end_call(
            &outputs,
            &"x".repeat(300),
            &cut_outcome(Some("/1.txt"))
        ));
        let problem = |id: &str| outputs.find(id).unwrap_err();
        let id = |id: &str| id.to_owned();
        assert_eq!(
            problem("whole"),
            OutputUnavailable::NotCut { id: id("whole") }
        );
        assert_eq!(
            problem("lost"),
            OutputUnavailable::NotKept { id: id("lost") }
        );
        let known = vec![id("kept")];
        let unknown = OutputUnavailable::UnknownId {
            id: id("/1.txt"),
            known,
            more: 0,
        };
        assert_eq!(problem("/1.txt"), unknown);
        end_call(&outputs, "kept", &cut_outcome(Some("/2.txt")));
        assert_eq!(outputs.find("kept").unwrap().path, Path::new("/2.txt"));
        for number in 0..MAX_CALLS {
            end_call(&outputs, &format!("{number}"), &cut_outcome(Some("/3.txt")));
        }
        let OutputUnavailable::UnknownId { known, more, .. } = problem("kept") else {
            panic!("it is remembered for ever")
        };
        assert_eq!(
            (known.len(), more),
            (MAX_LISTED_IDS, MAX_CALLS - MAX_LISTED_IDS)
        );
        assert_eq!(known.last(), Some(&format!("{}", MAX_CALLS - 1)));
        assert_eq!(outputs.0.lock().outputs.len(), MAX_CALLS);
    }
}
