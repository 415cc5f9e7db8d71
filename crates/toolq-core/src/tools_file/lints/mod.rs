//! Finds likely mistakes in a well-formed tools.yaml that depend on this machine or on what tools are meant to do: missing
//! programs, unmasked secrets, safe tools that start late, servers without a version, and sandboxes with a way out.

pub(crate) mod environment;
pub(crate) mod sandboxes;

use PackageSource::{Image, Npm, Python};
use redact::Mask;
use serde_json::Value;

use crate::os::Environment;
use crate::tools_file::argv::programs::{base_name, find_rules};
use crate::tools_file::yaml::YamlNode;
use crate::types::{
    Backing, BodyTemplate, FileProblem, RequestBody, ServerConfig, Span, Template, Tool,
    ToolsConfig,
};

/// Returns a warning for each schema in the file in which `find_problem` finds one: what it says completes "can't be called
/// over HTTP".
pub fn find_header_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    find_problem: impl Fn(&Value) -> Option<String>,
) -> Vec<FileProblem> {
    tools
        .tools
        .iter()
        .filter_map(|tool| {
            let keys = ["tools", &tool.name, "input_schema"];
            let span = tree.key_span_at(&keys, "");
            // For a key that is missing, the tree returns the span of the table. Such a schema isn't the author's.
            if span == tree.key_span_at(&keys[..2], "") {
                return None;
            }
            let why = find_problem(&tool.input_schema)?;
            let message = format!("`{}` can't be called over HTTP: {why}", tool.name);
            let hint =
                "`toolq serve --http` ends because of it; correct `x-mcp-header`, or remove it";
            Some(FileProblem::warning(span, message, "").with_hint(hint))
        })
        .collect()
}

/// Words in the name of a variable that suggest that its value is a secret.
const SECRET_NAME_WORDS: [&str; 8] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Returns warnings about names under `secrets` that mask nothing because the variable is misspelled, unset, empty, or
/// so short that masking it would hide unrelated text.
pub(crate) fn ineffective_secret_warnings(
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut found = Vec::new();
    for (name, span) in tree.texts_at(&["secrets"]) {
        let value = environment.get_os(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is unset or empty, so nothing is masked");
            (
                message,
                "`secrets` lists names of environment variables; check the spelling",
            )
        } else if value.len() < Mask::MIN_SECRET_BYTES {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked, since that would hide unrelated text",
            )
        } else {
            continue;
        };
        found.push(FileProblem::warning(span, message, "").with_hint(hint));
    }
    found
}

/// Returns warnings about variables that look like secrets but are used where values aren't masked automatically, one
/// per variable and tool.
pub(crate) fn unmasked_variable_warnings(tools: &ToolsConfig, tree: &YamlNode) -> Vec<FileProblem> {
    let mut found = Vec::new();
    let is_masked = |name: &str| {
        tools.secrets.iter().any(|secret| secret == name) || tools.env_file.get(name).is_some()
    };
    let warning = |name: &str, span: Span| {
        let message = format!("the value of {name} is not masked here");
        let hint = format!("add it to `secrets`: `secrets: [{name}]`");
        FileProblem::warning(span, message, "").with_hint(hint)
    };
    let defaults = tree.texts_at(&["defaults", "pass_env"]);
    for (name, span) in &defaults {
        if looks_secret(name) && !is_masked(name) {
            found.push(warning(name, *span));
        }
    }
    for tool in &tools.tools {
        let mut reported = Vec::new();
        for (pointer, name) in exposed_variables(tool) {
            let is_default = defaults.iter().any(|(known, _)| *known == name);
            let is_harmless = !looks_secret(name) || is_masked(name) || is_default;
            if is_harmless || reported.contains(&name) {
                continue;
            }
            reported.push(name);
            found.push(warning(name, tree.span_at(&["tools", &tool.name], pointer)));
        }
    }
    found
}

/// Returns the variables that a tool uses outside of its credentials, each with the JSON pointer to where it is used.
fn exposed_variables(tool: &Tool) -> Vec<(&'static str, &str)> {
    let mut templates: Vec<(&'static str, &Template)> = Vec::new();
    let mut passed = Vec::new();
    match &tool.backing {
        None | Some(Backing::Builtin(_) | Backing::Host) => {}
        Some(Backing::Command(command)) => {
            let names = command.pass_env.iter();
            passed.extend(names.map(|name| ("/command/pass_env", name.as_str())));
        }
        Some(Backing::Http(http)) => {
            templates.push(("/http/url", &http.url));
            templates.extend(http.proxy.iter().map(|proxy| ("/http/proxy", proxy)));
            if let RequestBody::Json(body) = &http.body {
                let parts = body.templates().into_iter();
                templates.extend(parts.map(|part| ("/http/body", part)));
            }
        }
        Some(Backing::Mcp(mcp)) => {
            let parts = mcp.arguments.iter().flat_map(BodyTemplate::templates);
            templates.extend(parts.map(|part| ("/mcp/arguments", part)));
        }
        Some(Backing::Agent(agent)) => {
            templates.push(("/agent/endpoint", &agent.endpoint));
            templates.push(("/agent/model", &agent.model));
            let fallback = agent.fallback_model.iter();
            templates.extend(fallback.map(|model| ("/agent/fallback_model", model)));
            templates.extend(agent.system.iter().map(|text| ("/agent/system", text)));
            templates.extend(agent.prompt.iter().map(|text| ("/agent/prompt", text)));
        }
    }
    templates
        .into_iter()
        .flat_map(|(pointer, part)| part.env_names().map(move |name| (pointer, name)))
        .chain(passed)
        .collect()
}

/// Whether the name of a variable suggests that its value is a secret.
fn looks_secret(name: &str) -> bool {
    name.split('_').any(|word| {
        SECRET_NAME_WORDS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    })
}

/// Where a package comes from, which determines how its version is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackageSource {
    Npm,
    Python,
    Image,
}

/// A program that fetches a package and runs it.
struct Fetcher {
    names: &'static [&'static str],
    /// The words before the options.
    subcommand: &'static [&'static str],
    /// Options that name the package. Without them, it is the first operand.
    package_options: &'static [&'static str],
    source: PackageSource,
}

const fn fetcher(
    names: &'static [&'static str],
    subcommand: &'static [&'static str],
    package_options: &'static [&'static str],
    source: PackageSource,
) -> Fetcher {
    Fetcher {
        names,
        subcommand,
        package_options,
        source,
    }
}

const NPM_PACKAGE: &[&str] = &["-p", "--package"];

const FETCHERS: [Fetcher; 8] = [
    fetcher(&["npx", "pnpx", "bunx"], &[], NPM_PACKAGE, Npm),
    fetcher(&["bun"], &["x"], NPM_PACKAGE, Npm),
    fetcher(&["npm"], &["exec"], NPM_PACKAGE, Npm),
    fetcher(&["pnpm", "yarn"], &["dlx"], NPM_PACKAGE, Npm),
    fetcher(&["uvx"], &[], &["--from"], Python),
    fetcher(&["uv"], &["tool", "run"], &["--from"], Python),
    fetcher(&["pipx"], &["run"], &["--spec"], Python),
    fetcher(&["docker", "podman", "nerdctl"], &["run"], &[], Image),
];

/// Returns a warning for each server that runs a package without a pinned version.
pub(crate) fn unpinned_package_warnings(tools: &ToolsConfig, tree: &YamlNode) -> Vec<FileProblem> {
    let warning = |server: &ServerConfig| {
        let command = server.program()?;
        let arguments = command
            .arguments
            .iter()
            .map(|argument| argument.sole_text().unwrap_or_default());
        let argv: Vec<&str> = std::iter::once(&*command.program)
            .chain(arguments)
            .collect();
        let (index, source) = find_unpinned_package(&argv)?;
        let span_at = |pointer: &str| tree.span_at(&["servers", &server.name], pointer);
        let span =
            span_at(&format!("/command/{index}")).max(span_at(&format!("/command/argv/{index}")));
        let message = format!(
            "the server `{}` runs whatever version of this is the newest when it starts",
            server.name
        );
        let hint = match source {
            Npm => {
                "write the version behind the name: `NAME@1.2.3`; `toolq servers` shows what a server calls its own"
            }
            Python => {
                "write the version behind the name: `NAME==1.2.3`; `toolq servers` shows what a server calls its own"
            }
            Image => "write a tag, or better a digest that can't be moved: `IMAGE@sha256:…`",
        };
        Some(FileProblem::warning(span, message, "no version").with_hint(hint))
    };
    tools
        .servers
        .iter()
        .filter_map(|server| warning(server))
        .collect()
}

/// Returns the index of the first argument that names a package without a version.
fn find_unpinned_package(argv: &[&str]) -> Option<(usize, PackageSource)> {
    let name = base_name(argv.first()?);
    let fetcher = FETCHERS.iter().find(|fetcher| {
        fetcher.names.contains(&&*name) && argv[1..].starts_with(fetcher.subcommand)
    })?;
    let mut index = 1 + fetcher.subcommand.len();
    let mut has_package_option = false;
    while let Some(argument) = argv.get(index) {
        let (option, value) = argument.split_once('=').unwrap_or((argument, ""));
        if *argument == "--no-install" || *argument == "--no" || *argument == "--offline" {
            return None;
        }
        if !argument.starts_with('-') || *argument == "--" {
            break;
        }
        if fetcher.package_options.contains(&option) {
            has_package_option = true;
            let has_value = argument.contains('=');
            let package = if has_value {
                value
            } else {
                argv.get(index + 1)?
            };
            if !fetcher.source.is_pinned(package) {
                return Some((index + usize::from(!has_value), fetcher.source));
            }
        }
        let takes_next = fetcher.package_options.contains(argument)
            || find_rules(&name).any(|rule| rule.takes_next(argument));
        index += 1 + usize::from(takes_next);
    }
    index += usize::from(argv.get(index) == Some(&"--"));
    let package = argv.get(index)?;
    let is_pinned = has_package_option || fetcher.source.is_pinned(package);
    (!is_pinned).then_some((index, fetcher.source))
}

impl PackageSource {
    /// Whether the name of a package has a version, or is that of a directory or file.
    fn is_pinned(self, package: &str) -> bool {
        let is_path = package.starts_with(['.', '/', '~']) || package.starts_with("file:");
        match self {
            Npm => {
                let version = package.get(1..).and_then(|rest| rest.rsplit_once('@'));
                let is_repository = package.contains("://") || package.contains(':');
                let commit = package.split_once('#');
                is_path
                    || commit.is_some()
                    || !is_repository && version.is_some_and(|(_, version)| is_version(version))
            }
            Python => {
                let at_version = package.rsplit_once('@').map(|(_, version)| version);
                is_path
                    || package.contains("==")
                    || at_version
                        .is_some_and(|version| !version.contains('/') && is_version(version))
            }
            Image => {
                let tag = package
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .split_once(':')
                    .map(|(_, tag)| tag);
                package.contains("@sha256:") || tag.is_some_and(is_version)
            }
        }
    }
}

/// Whether this names one version, rather than the newest one.
fn is_version(text: &str) -> bool {
    !matches!(text, "" | "latest" | "next" | "*" | "x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools_file::load::parse_tools_file;
    use std::path::Path;

    /// An unmasked secret is reported by `check`, before it can leak.
    #[test]
    fn unmasked_secrets_are_warned_about() {
        let text = r#"secrets: [NAMED_TOKEN]
tools:
  a: {input_schema: {type: object}, http: {url: "${BASE}/${API_KEY}/${NAMED_TOKEN}", method: POST, body: {x: ["${API_KEY:-d}", "${DB_PASSWORD}"]}}}
  b: {input_schema: {type: object}, http: {url: "https://a.b/${In_Header_Key}", headers: {x-key: "${In_Header_Key}"}}}
  c: {input_schema: {type: object}, command: {argv: [cat], pass_env: [HOME, My_Secret, MONKEY], env: {X: "${MASKED_TOKEN}"}}}
  e: {input_schema: {type: object}, agent: {endpoint: "https://a.b/${CREDENTIAL}", api_key: "${E_KEY}", model: "${M_TOKEN}", fallback_model: "${F_TOKEN}", system: "${S_TOKEN} ${E_KEY} ${MAX_TOKENS}", prompt: "${P_TOKEN}"}}
"#;
        let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
        let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
        let found: Vec<(String, &str)> = unmasked_variable_warnings(&tools, &tree)
            .into_iter()
            .map(|problem| {
                let after = &text[problem.span.start..];
                let name = problem.message.replace("the value of ", "");
                let name = name.replace(" is not masked here", "");
                (
                    name,
                    after.split([' ', ':', '/']).next().unwrap_or_default(),
                )
            })
            .collect();
        let expected = [
            ("API_KEY", "\"${BASE}"),
            ("DB_PASSWORD", "body"),
            ("My_Secret", "pass_env"),
            ("CREDENTIAL", "\"https"),
            ("M_TOKEN", "\"${M_TOKEN}\","),
            ("F_TOKEN", "\"${F_TOKEN}\","),
            ("S_TOKEN", "\"${S_TOKEN}"),
            ("P_TOKEN", "\"${P_TOKEN}\"}}\n"),
        ];
        let expected = expected.map(|(name, at)| (name.to_owned(), at));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_package_without_a_version_is_found() {
        let unpinned = [
            ("npx -y @a/server", 2),
            ("npx -y @a/server@latest .", 2),
            ("/usr/bin/npx --registry https://r server", 3),
            ("npx -y -p @a/b server", 3),
            ("npx --package=@a/b server", 1),
            ("npx -- server", 2),
            ("npx github:a/b", 1),
            ("bunx server", 1),
            ("bun x server", 2),
            ("pnpm dlx server", 2),
            ("npm exec -- server", 3),
            ("uvx mcp-server-time", 1),
            ("uvx --python 3.12 mcp-server-time --local-timezone UTC", 3),
            ("uvx --from git+https://github.com/a/b server", 2),
            ("uvx mcp-server-time@latest", 1),
            ("uv tool run mcp-server-time", 3),
            ("pipx run server", 2),
            ("docker run -i --rm image", 4),
            ("docker run -i --rm -e KEY registry:5000/a/image", 6),
            ("podman run --rm -v a:b image:latest", 5),
        ];
        for (command, index) in unpinned {
            let argv: Vec<&str> = command.split(' ').collect();
            let found = find_unpinned_package(&argv).map(|(index, _)| index);
            assert_eq!(found, Some(index), "{command}");
        }
    }

    #[test]
    fn pinned_packages_and_other_programs_are_fine() {
        let fine = [
            "npx -y @a/server@2026.8.31 .",
            "npx -y -p @a/b@1 server",
            "npx --no-install server",
            "npx ./server",
            "npx github:a/b#4f2c",
            "pnpm exec server",
            "uvx mcp-server-time==2026.10.19",
            "uvx mcp-server-time@2026.10.19",
            "uvx --from git+https://github.com/a/b@v1 server",
            "uvx --from ./server server",
            "uv run server",
            "pipx run --spec server==1 server",
            "docker run -i --rm -e KEY image:1.2",
            "docker run registry:5000/a/image@sha256:0a",
            "docker exec -i box server",
            "node server.js",
            "npx",
        ];
        for command in fine {
            let argv: Vec<&str> = command.split(' ').collect();
            assert_eq!(find_unpinned_package(&argv), None, "{command}");
        }
    }

    #[test]
    fn the_warning_stands_at_the_package() {
        let text = "
servers:
  a: {command: [npx, -y, some-server]}
  b: {command: {argv: [docker, run, -i, some-image], env: {K: v}}}
  c: {command: [npx, -y, some-server@1]}
tools: {}
";
        let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
        let found = unpinned_package_warnings(&loaded.tools.unwrap(), &loaded.tree.unwrap());
        let spans: Vec<&str> = found
            .iter()
            .map(|problem| &text[problem.span.start..problem.span.start + problem.span.len])
            .collect();
        assert_eq!(spans, ["some-server", "some-image"]);
    }
}
