//! Which tools an agent may call: those that it names. Its `new_task` reaches no further than its list does.

use std::sync::Arc;

use crate::tools_file::resolve::new_task;
use crate::types::{AgentBacking, Backing, Builtin, Tool, Tools};

/// The tools of the agent `agent`, whose backing is `backing`, in the order of its list; `new_task` with whom it may name.
pub fn tools_of(all: &Tools, agent: &Tool, backing: &AgentBacking) -> Vec<Arc<Tool>> {
    let named = backing.tools.iter().filter_map(|name| all.get(name));
    let own = named.filter_map(|tool| match &tool.backing {
        Some(Backing::Builtin(Builtin::NewTask(agents))) => {
            let agents = handed(agents, agent, backing);
            (!agents.is_empty()).then(|| Arc::new(new_task(agents, &tool.messages)))
        }
        _ => Some(Arc::clone(tool)),
    });
    own.collect()
}

/// The agents, of those of the file, to whom `agent` may hand tasks by `new_task`: those among its own tools; where it
/// names none, all but itself.
pub(crate) fn handed(agents: &[Arc<Tool>], agent: &Tool, backing: &AgentBacking) -> Vec<Arc<Tool>> {
    let only = |wanted: &dyn Fn(&Tool) -> bool| -> Vec<Arc<Tool>> {
        let found = agents.iter().filter(|tool| wanted(tool));
        found.cloned().collect()
    };
    let own = only(&|tool| backing.tools.contains(&tool.name));
    if own.is_empty() {
        return only(&|tool| tool.name != agent.name);
    }
    own
}
