//! The tools that a call may use: its own and, if that is an agent, those that the agent may call. And the variables that
//! they read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolq_core::tools_file::select_agent_tools;
use toolq_core::types::{
    AgentBacking, Backing, BuiltinTool, CommandBacking, HttpBacking, RequestBody, Template, Tool,
    ToolsConfig,
};

/// Tools by name.
pub type ReachableTools = BTreeMap<String, Arc<Tool>>;

/// Adds `tool` and the tools that it may call.
pub fn add_reachable_tools(found: &mut ReachableTools, tools: &ToolsConfig, tool: &Arc<Tool>) {
    if found.contains_key(&tool.name) {
        return;
    }
    found.insert(tool.name.clone(), Arc::clone(tool));
    match &tool.backing {
        Some(Backing::Agent(agent)) => {
            for own in select_agent_tools(tools, tool, agent) {
                add_reachable_tools(found, tools, &own);
            }
        }
        Some(Backing::Builtin(BuiltinTool::NewTask(agents))) => {
            for agent in agents {
                add_reachable_tools(found, tools, agent);
            }
        }
        _ => {}
    }
}

/// Returns the names of the environment variables that calls of `tool` read or pass on.
pub fn used_variables(tool: &Tool) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match &tool.backing {
        Some(Backing::Command(command)) => add_command(&mut names, command),
        Some(Backing::Http(http)) => add_templates(&mut names, http_templates(http)),
        Some(Backing::Agent(agent)) => add_templates(&mut names, agent_templates(agent)),
        Some(Backing::Mcp(mcp)) => {
            add_templates(&mut names, mcp.server.templates());
            let program = mcp.server.program();
            names.extend(
                program
                    .into_iter()
                    .flat_map(|program| program.pass_env.clone()),
            );
            let arguments = mcp.arguments.as_ref();
            add_templates(
                &mut names,
                arguments.map_or_else(Vec::new, |body| body.templates()),
            );
        }
        Some(Backing::Builtin(_) | Backing::Host) | None => {}
    }
    if let Some(probe) = &tool.probe {
        add_command(&mut names, probe);
    }
    names
}

fn add_templates<'t>(
    names: &mut BTreeSet<String>,
    templates: impl IntoIterator<Item = &'t Template>,
) {
    let found = templates.into_iter().flat_map(Template::env_names);
    names.extend(found.map(str::to_owned));
}

fn add_command(names: &mut BTreeSet<String>, command: &CommandBacking) {
    add_templates(names, command.env.iter().map(|(_, template)| template));
    names.extend(command.pass_env.iter().cloned());
}

fn http_templates(http: &HttpBacking) -> Vec<&Template> {
    let pairs = http.query.iter().chain(&http.headers);
    let mut templates: Vec<&Template> = pairs.map(|(_, template)| template).collect();
    templates.push(&http.url);
    templates.extend(&http.proxy);
    if let RequestBody::Json(body) = &http.body {
        templates.extend(body.templates());
    }
    templates
}

fn agent_templates(agent: &AgentBacking) -> Vec<&Template> {
    let mut templates = vec![&agent.endpoint, &agent.model];
    templates.extend(&agent.api_key);
    templates.extend(&agent.fallback_model);
    templates.extend(&agent.system);
    templates.extend(&agent.prompt);
    templates.extend(agent.headers.iter().map(|(_, template)| template));
    templates
}
