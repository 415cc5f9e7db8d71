//! Templates: a value stays within one argument, variable, or part of a URL, and is handed over whole, or the call is
//! refused.

use serde_json::Value;
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::template::{VariableMode, parse_with_marks};
use toolq_core::types::{
    AcceptedCall, Backing, CommandBacking, CommandLimits, HttpBacking, HttpMethod, Invocation,
    Leftovers, RejectionReason, RequestBody, StderrUse, StdinContent, StdinSource, Template,
    TemplatePart, Tool, Verdict,
};

use toolq_testing::{sample_call, tool_with_backing, tools_with_root};

use crate::choices::Choices;

const PROGRAM: &str = "program";
/// Every path is inside it, so that paths are refused only for their text.
const ROOT: &str = "/";
const URL_START: &str = "http://host.example:8080/";
/// Maximum number of arguments.
const MAX_ARGUMENTS: usize = 6;

/// Fills templates from the bytes with values from the bytes.
pub fn templates(data: &[u8]) {
    let mut choices = Choices::new(data);
    let shape = choices.byte();
    let input = TestInput::from_choices(&mut choices);
    if shape & 1 == 0 {
        check_command(shape, &input, &mut choices);
    } else {
        check_request(&input, &mut choices);
    }
}

/// An input, and the text of each value in it.
struct TestInput {
    json: String,
    /// Text by dotted name, and the texts of the items if it is an array.
    values: Vec<(&'static str, String, Option<Vec<String>>)>,
}

impl TestInput {
    fn from_choices(choices: &mut Choices<'_>) -> Self {
        let (a, b, number) = (choices.text(), choices.text(), choices.text());
        let item_count = choices.below(4);
        let items: Vec<String> = (0..item_count).map(|_| choices.text()).collect();
        let is_number = serde_json::from_str::<Value>(&number).is_ok_and(|value| value.is_number());
        // A larger exponent is refused, whatever the template is.
        let exponent_len = number.split(['e', 'E']).nth(1).map_or(0, str::len);
        let number = if is_number && exponent_len < 4 {
            number.trim().to_owned()
        } else {
            "-1.50".to_owned()
        };
        let list = Value::from(items.clone()).to_string();
        let (quoted_a, quoted_b) = (Value::from(&*a), Value::from(&*b));
        let object = format!(r#"{{"a":{quoted_b}}}"#);
        Self {
            json: format!(
                r#"{{"a":{quoted_a},"b":{quoted_b},"n":{number},"list":{list},"o":{object},"null":null}}"#
            ),
            values: vec![
                ("a", a, None),
                ("b", b.clone(), None),
                ("n", number, None),
                ("list", list, Some(items)),
                ("o", object, None),
                ("o.a", b, None),
                ("null", "null".to_owned(), None),
            ],
        }
    }

    fn find(&self, path: &[String]) -> Option<&(&'static str, String, Option<Vec<String>>)> {
        let name = path.join(".");
        self.values.iter().find(|(other, _, _)| *other == name)
    }
}

/// What a template should become.
enum Expectation {
    Refused,
    Omitted,
    Texts(Vec<String>),
}

fn check_command(shape: u8, input: &TestInput, choices: &mut Choices<'_>) {
    if Input::parse(&input.json).is_err() {
        return; // Such as a number with an exponent beyond 400.
    }
    let names = |bit: u8, name: &str| {
        if shape & bit == 0 {
            Vec::new()
        } else {
            vec![vec![name.to_owned()]]
        }
    };
    let (dashes, paths) = (names(2, "a"), [names(4, "b"), names(8, "list")].concat());
    let variable = parse_argument_template(&choices.text());
    let stdin = parse_argument_template(&choices.text());
    let mut arguments = Vec::new();
    while arguments.len() < MAX_ARGUMENTS && !choices.is_empty() {
        arguments.push(parse_argument_template(&choices.text()));
    }
    let spreads_in_text = |template: &Template| template.parts.len() > 1 && has_splat(template);
    if arguments.iter().any(spreads_in_text) || has_splat(&variable) || has_splat(&stdin) {
        return; // An error of the file.
    }
    let filler = ExpectedFilling {
        input,
        dashes: &dashes,
        paths: &paths,
    };
    let expected_argv: Vec<Expectation> = arguments
        .iter()
        .map(|template| filler.argument(template))
        .collect();
    let expected_variable = filler.text(&variable, true);
    let expected_stdin = filler.text(&stdin, false);
    let backing = CommandBacking {
        program: PROGRAM.to_owned(),
        arguments,
        dashes: dashes.clone(),
        stdin: StdinSource::Template(stdin),
        env: vec![("VARIABLE".to_owned(), variable.clone())],
        pass_env: Vec::new(),
        cwd: ROOT.into(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::default(),
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    };
    let tool = Tool {
        paths: paths.clone(),
        ..tool_with_backing(Backing::Command(backing))
    };
    let is_refused = |expected: &Expectation| matches!(expected, Expectation::Refused);
    let expects_refusal = expected_argv.iter().any(is_refused)
        || is_refused(&expected_variable)
        || is_refused(&expected_stdin);
    let accepted = match check(tool, input) {
        Ok(accepted) => accepted,
        // Whether a path is inside the root is another matter.
        Err(RejectionReason::PathOutsideRoot) if !paths.is_empty() => return,
        Err(reason) => return assert!(expects_refusal, "{reason:?}"),
    };
    assert!(
        !expects_refusal,
        "a value should have been refused: {:?}",
        accepted.invocation
    );
    let Some(Invocation::Command(command)) = accepted.invocation else {
        panic!("no command");
    };
    let mut argv = vec![PROGRAM.to_owned()];
    argv.extend(expected_argv.into_iter().flat_map(Expectation::texts));
    assert_eq!(command.argv.iter().collect::<Vec<_>>(), argv);
    let env: Vec<String> = command
        .env
        .iter()
        .map(|(_, value)| value.to_string())
        .collect();
    assert_eq!(env, expected_variable.texts());
    let stdin = match command.stdin {
        StdinContent::Text(text) => vec![text.into_string()],
        StdinContent::None => Vec::new(),
        StdinContent::Input => panic!("stdin is the input"),
    };
    assert_eq!(stdin, expected_stdin.texts());
}

fn has_splat(template: &Template) -> bool {
    let is_splat = |part: &TemplatePart| matches!(part, TemplatePart::Value { splat: true, .. });
    template.parts.iter().any(is_splat)
}

fn check(tool: Tool, input: &TestInput) -> Result<Box<AcceptedCall>, RejectionReason> {
    let name = tool.name.clone();
    let checker = CallChecker::new(tools_with_root(vec![tool], ROOT.into()));
    match checker
        .check_call(sample_call(0, &name, &input.json))
        .verdict
    {
        Verdict::Accepted(accepted) => Ok(accepted),
        Verdict::Rejected(rejection) => Err(rejection.reason),
    }
}

impl Expectation {
    fn texts(self) -> Vec<String> {
        match self {
            Self::Texts(texts) => texts,
            Self::Refused | Self::Omitted => Vec::new(),
        }
    }
}

/// The rules for values, stated once more.
struct ExpectedFilling<'a> {
    input: &'a TestInput,
    dashes: &'a [Vec<String>],
    paths: &'a [Vec<String>],
}

impl ExpectedFilling<'_> {
    fn argument(&self, template: &Template) -> Expectation {
        if let [
            TemplatePart::Value {
                path,
                optional,
                splat: true,
            },
        ] = &*template.parts
        {
            return match self.input.find(path) {
                None if *optional => Expectation::Omitted,
                Some((_, text, _)) if *optional && text == "null" => Expectation::Omitted,
                Some((_, _, Some(items))) => self.spread(path, items),
                _ => Expectation::Refused,
            };
        }
        let expected = self.text(template, true);
        match &expected {
            Expectation::Texts(texts) if texts[0].starts_with('-') => {
                let first = self.first_value(template);
                let may_be_option = first.is_some_and(|path| !self.dashes.contains(path));
                if may_be_option {
                    Expectation::Refused
                } else {
                    expected
                }
            }
            _ => expected,
        }
    }

    fn spread(&self, path: &[String], items: &[String]) -> Expectation {
        let are_paths = self.paths.iter().any(|other| other == path);
        let mut texts = Vec::new();
        for item in items {
            let text = if are_paths {
                as_path(item)
            } else {
                item.clone()
            };
            if text.contains('\0') || text.starts_with('-') {
                return Expectation::Refused;
            }
            texts.push(text);
        }
        Expectation::Texts(texts)
    }

    /// Returns one text, in which values replace their placeholders.
    fn text(&self, template: &Template, is_argument: bool) -> Expectation {
        let mut text = String::new();
        for part in &template.parts {
            match part {
                TemplatePart::Text(part) => text += part,
                TemplatePart::Env { .. } => panic!("variables aren't expanded here"),
                TemplatePart::Value { path, optional, .. } => match self.input.find(path) {
                    None if *optional => return Expectation::Omitted,
                    None => return Expectation::Refused,
                    Some((_, value, _)) if *optional && value == "null" && path[0] == "null" => {
                        return Expectation::Omitted;
                    }
                    Some((_, value, _)) if is_argument && value.contains('\0') => {
                        return Expectation::Refused;
                    }
                    Some((_, value, _)) => text += value,
                },
            }
        }
        if is_argument && let Some(start) = self.path_start(template) {
            let path = as_path(&text[start..]);
            text.replace_range(start.., &path);
        }
        Expectation::Texts(vec![text])
    }

    /// Returns the value that an argument begins with, if it doesn't begin with the author's text: the first one that
    /// isn't empty, or the first one if all are.
    fn first_value<'t>(&self, template: &'t Template) -> Option<&'t Vec<String>> {
        let leading = template.parts.iter().map_while(|part| match part {
            TemplatePart::Value { path, .. } => Some(path),
            _ => None,
        });
        let mut filled = leading.clone().filter(|path| !self.is_empty_text(path));
        filled.next().or_else(|| leading.clone().next())
    }

    /// Returns where a path begins in an argument: after the last `=` or `:` of the author's text, if a value of
    /// `paths` comes right after it.
    fn path_start(&self, template: &Template) -> Option<usize> {
        let mut parts = template.parts.iter();
        let mut start = 0;
        let mut part = parts.next()?;
        if let TemplatePart::Text(text) = part {
            if !text.ends_with(['=', ':']) {
                return None;
            }
            start = text.len();
            part = parts.next()?;
        }
        loop {
            let TemplatePart::Value { path, .. } = part else {
                return None;
            };
            if !self.is_empty_text(path) {
                return self.paths.contains(path).then_some(start);
            }
            part = parts.next()?;
        }
    }

    fn is_empty_text(&self, path: &[String]) -> bool {
        self.input
            .find(path)
            .is_none_or(|(_, text, _)| text.is_empty())
    }
}

/// Returns a path so that no program takes it for anything else.
fn as_path(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._- ".contains(c);
    if first.chars().all(allowed) && !first.starts_with(['-', ' ']) {
        path.to_owned()
    } else {
        format!("./{path}")
    }
}

/// A value never adds a segment, a parameter, or a fragment to a URL, and never reaches the host.
fn check_request(input: &TestInput, choices: &mut Choices<'_>) {
    let url = format!("{URL_START}{}", choices.text());
    let header = parse_argument_template(&choices.text());
    let url = parse_argument_template(&url);
    let is_plain = |template: &Template| !has_splat(template);
    if !is_plain(&url) || !is_plain(&header) {
        return;
    }
    let backing = HttpBacking {
        method: HttpMethod::Get,
        url: url.clone(),
        allowed_hosts: None,
        query: Vec::new(),
        headers: vec![("x-value".to_owned(), header.clone())],
        body: RequestBody::Input,
        success_status: Vec::new(),
        select: None,
        max_redirects: 0,
        proxy: None,
    };
    let Ok(accepted) = check(tool_with_backing(Backing::Http(backing)), input) else {
        return;
    };
    let Some(Invocation::Http(request)) = accepted.invocation else {
        panic!("no request");
    };
    let filled = request.url.to_string();
    assert!(filled.starts_with(URL_START), "{filled}");
    let structure = |text: &str| {
        text.matches(['/', '?', '#', '&', '=', ':', '@', '\\'])
            .collect::<String>()
    };
    let author_text: String = url
        .parts
        .iter()
        .filter_map(|part| match part {
            TemplatePart::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(structure(&filled), structure(&author_text), "{filled}");
    // A value may not begin another header line.
    let author_breaks = header
        .parts
        .iter()
        .any(|part| matches!(part, TemplatePart::Text(text) if text.contains(['\r', '\n'])));
    let has_breaks = request
        .headers
        .iter()
        .any(|(_, value)| value.to_string().contains(['\r', '\n']));
    assert!(author_breaks || !has_breaks, "a header has two lines");
}

/// Parses a template in which environment variables aren't expanded, as in the arguments of a command.
fn parse_argument_template(text: &str) -> Template {
    parse_with_marks(text, VariableMode::Literal).template
}
