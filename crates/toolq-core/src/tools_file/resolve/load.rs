//! The text of tools.yaml → tools that hold, or every problem of the file at once, each with its place and its cure.
//!
//! In the order of the text's way: its form, its schemas, then what each setting means with the others. Nothing of the
//! machine is asked here; what only it can tell is in `warnings`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::template::is_variable_name;
use crate::tools_file::keys::{Defaults, ToolsFile};
use crate::tools_file::lints::when;
use crate::tools_file::resolve::agent;
use crate::tools_file::resolve::builtins;
use crate::tools_file::resolve::context::{Checks, Scope};
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::resolve::input_schema;
use crate::tools_file::resolve::limits;
use crate::tools_file::resolve::messages;
use crate::tools_file::resolve::prices;
use crate::tools_file::resolve::resource_limits;
use crate::tools_file::resolve::rules::Rules;
use crate::tools_file::resolve::tool;
use crate::tools_file::resolve::tool::Shared;
use crate::tools_file::spanned::Setting;
use crate::tools_file::yaml::{Node, parse_yaml};
use crate::types::{Backing, Messages, Problem, Span, Template, Tool, Tools};

/// Calls running at once where the file is silent.
const CONCURRENCY: usize = 10;
const MAX_CONCURRENCY: u32 = 10_000;

/// A tools.yaml that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The tools, if no problem is an error.
    pub tools: Option<Tools>,
    /// In the order of the file.
    pub problems: Vec<Problem>,
    /// Where everything stands; none where the text is no YAML.
    pub tree: Option<Node>,
}

/// Reads the text of a tools.yaml that lies in `dir`; its `root` starts from `current`. Both are absolute.
pub fn load(text: &str, dir: &Path, current: &Path) -> Loaded {
    let tree = match parse_yaml(text) {
        Ok(tree) => tree,
        Err(problems) => {
            return Loaded {
                tools: None,
                problems,
                tree: None,
            };
        }
    };
    let (file, problems) = ToolsFile::read(&tree);
    let mut findings = Findings::new(text, problems);
    let tools = file.value().map(|file| {
        let mut checks = Checks {
            tree: &tree,
            dir,
            findings: &mut findings,
        };
        tools(file, text, current, &mut checks)
    });
    Loaded {
        tools: tools.filter(|_| !findings.has_errors()),
        problems: findings.sorted(),
        tree: Some(tree),
    }
}

fn tools(file: &ToolsFile, text: &str, current: &Path, checks: &mut Checks<'_, '_>) -> Tools {
    check_version(&file.version, checks.findings);
    let root: PathBuf = current
        .join(file.root.value().map_or("", String::as_str))
        .components()
        .collect();
    let messages = messages::read(&file.messages, checks.findings);
    let mut tools = each_tool(file, &root, &messages, checks);
    tools.extend(builtins::wanted(file, &tools, &messages, checks.findings));
    let tools = Tools {
        secrets: secrets(file, &tools, checks.findings),
        concurrency: concurrency(&file.concurrency, checks.findings),
        tools,
        root,
        dir: checks.dir.to_owned(),
        messages,
        prices: prices::read(&file.prices, checks.findings),
        digest: hex(&Sha256::digest(text)),
    };
    agent::check_all(file, &tools, checks.findings);
    tools
}

fn each_tool(
    file: &ToolsFile,
    root: &Path,
    messages: &Messages,
    checks: &mut Checks<'_, '_>,
) -> Vec<Arc<Tool>> {
    if file.tools.is_missing() {
        checks.findings.error(
            Span::default(),
            "the file has no `tools`",
            "",
            "add `tools:` and each tool below it by its name; `toolq init` writes an example",
        );
    }
    let nothing = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&nothing);
    limits::check_timeout(&defaults.timeout, checks.findings);
    limits::check_retry(&defaults.retry, checks.findings);
    limits::check_output(&defaults.max_output, checks.findings);
    resource_limits::check(&defaults.limits, checks.findings);
    let rules = Rules::read(&file.rules, checks.findings);
    let names: Vec<&str> = file.tools.entries().map(|(name, _)| name).collect();
    rules.warn_of_idle(&names, checks.findings);
    let shared = Shared {
        defaults,
        rules: &rules,
        messages,
    };
    let mut tools = Vec::new();
    for (name, tool) in file.tools.entries() {
        let schema = input_schema::input_schema(name, tool, checks);
        when::check(name, tool, &schema, checks);
        let mut scope = Scope {
            schema: &schema,
            root,
            findings: checks.findings,
        };
        tools.push(Arc::new(tool::resolved(name, tool, &shared, &mut scope)));
    }
    tools
}

fn check_version(setting: &Setting<u32>, findings: &mut Findings<'_>) {
    if let Some(version) = setting.given().filter(|version| version.value != 1) {
        findings.error(
            version.span,
            format!("version {} of tools.yaml is not known", version.value),
            "",
            "this toolq reads version 1",
        );
    }
}

fn concurrency(setting: &Setting<u32>, findings: &mut Findings<'_>) -> NonZeroUsize {
    let default = NonZeroUsize::new(CONCURRENCY).unwrap_or(NonZeroUsize::MIN);
    let Some(given) = setting.given() else {
        return default;
    };
    if !(1..=MAX_CONCURRENCY).contains(&given.value) {
        findings.error(
            given.span,
            format!("{} calls cannot run at once", given.value),
            "1 to 10000",
            "1 turns parallelism off",
        );
    }
    NonZeroUsize::new(given.value as usize).unwrap_or(default)
}

/// The names under `secrets`, and those that stand where credentials do.
fn secrets(file: &ToolsFile, tools: &[Arc<Tool>], findings: &mut Findings<'_>) -> Vec<String> {
    let mut names = BTreeSet::new();
    for name in file.secrets.items() {
        if !is_variable_name(&name.value) {
            findings.error(
                name.span,
                format!("`{}` is no name of an environment variable", name.value),
                "",
                "`secrets` has the names of variables, never their values",
            );
        }
        names.insert(name.value.clone());
    }
    let backings = tools.iter().filter_map(|tool| tool.backing.as_ref());
    for template in backings.flat_map(confidential) {
        names.extend(template.env_names().map(str::to_owned));
    }
    names.into_iter().collect()
}

/// The templates whose variables are secrets.
fn confidential(backing: &Backing) -> Vec<&Template> {
    let templates = |pairs| -> &[(String, Template)] { pairs };
    let (one, other) = match backing {
        Backing::Command(command) => (templates(&command.env), templates(&[])),
        Backing::Http(http) => (templates(&http.headers), templates(&http.query)),
        Backing::Agent(agent) => return agent.api_key.iter().collect(),
        Backing::Builtin(_) => return Vec::new(),
    };
    one.iter()
        .chain(other)
        .map(|(_, template)| template)
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        for digit in [byte >> 4, byte & 15] {
            hex.extend(char::from_digit(digit.into(), 16));
        }
        hex
    })
}
