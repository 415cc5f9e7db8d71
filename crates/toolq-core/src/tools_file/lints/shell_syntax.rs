//! What is written by habit where a shell or another template language would read it. Here it is text, and that is said.

use crate::template::{Mark, Variables, other_name};
use crate::tools_file::argv::{Role, base_name};
use crate::tools_file::resolve::{Declared, Scope, Sink, declared};
use crate::tools_file::spanned::Placed;
use crate::types::{Span, Template};

/// What a shell reads between commands, where it stands alone.
const OPERATORS: [&str; 12] = [
    "|", "||", "&", "&&", ";", "<", "<<<", ">", ">>", "2>", "2>&1", "&>",
];
/// Programs with arguments of the same looks.
const COMPARING: [&str; 5] = ["[", "expr", "fd", "find", "test"];

impl Scope<'_, '_> {
    /// `$NAME`. In an argument it may mean something to the program, unless it looks like a path or a whole value.
    pub(crate) fn shell_variable<T: AsRef<str>>(
        &mut self,
        placed: &Placed<T>,
        mark: &Mark,
        sink: Sink,
    ) {
        let text = placed.value.as_ref();
        let words = &text[mark.range.clone()];
        let (before, behind) = (&text[..mark.range.start], &text[mark.range.end..]);
        let name = &words[1..];
        let is_whole = (before.is_empty() || before.ends_with('='))
            && (behind.is_empty() || behind.starts_with('/'));
        let hint = match sink.variables {
            Variables::Read => format!("a variable of the environment is `${{{name}}}`"),
            Variables::Text if sink.spreads && !sink.is_code && is_whole => format!(
                "no shell reads the arguments: write the value out, or let the program read {name} by `env` or `pass_env`"
            ),
            Variables::Text => return,
        };
        let span = self.findings.within(placed, &mark.range);
        let message = format!("`{words}` stays text");
        self.findings.warning(span, message, "not replaced", hint);
    }

    /// `{ name }` or `{name|filter}`, where the input has such a value.
    pub(crate) fn other_placeholder(&mut self, span: Span, words: &str) {
        let inner = &words[1..words.len() - 1];
        let Some(path) = other_name(inner) else {
            return;
        };
        if let Declared::Always(_) | Declared::Optional(_) = declared(self.schema, &path) {
            let message = format!("`{words}` stays text");
            let hint = format!(
                "a value of the input is `{{{}}}`, without spaces and filters; what is no string is filled in as JSON",
                path.join(".")
            );
            self.findings.warning(span, message, "not replaced", hint);
        }
    }

    /// `~`, which shells take for the home directory.
    pub(crate) fn home(&mut self, text: &Placed<String>) {
        if text.value == "~" || text.value.starts_with("~/") {
            self.findings.warning(
                text.span,
                "`~` stays text: only a shell takes it for the home directory",
                "not replaced",
                "write the path out; a program finds the home directory in the variable HOME",
            );
        }
    }

    /// Operators of a shell among the arguments; `argv` are the elements with their roles, the program first.
    pub(crate) fn operators(&mut self, argv: &[(&Placed<String>, Role)]) {
        let programs = argv.iter().filter(|(_, role)| *role == Role::Program);
        let mut programs = programs.map(|(program, _)| base_name(&program.value));
        if programs.any(|program| COMPARING.contains(&program.as_str())) {
            return;
        }
        let is_operator = |(element, role): &&(&Placed<String>, Role)| {
            *role == Role::Data && OPERATORS.contains(&element.value.as_str())
        };
        if let Some((operator, _)) = argv.iter().find(is_operator) {
            self.findings.warning(
                operator.span,
                format!(
                    "no shell reads the arguments: `{}` is handed to the program",
                    operator.value
                ),
                "an argument",
                "let a shell read it, with the values beside its text: `[sh, -c, 'sort -- \"$1\" | uniq', --, \"{path}\"]`",
            );
        }
    }

    /// A pair of a query that is written into `url` is sent without its value, too.
    pub(crate) fn optional_in_url(&mut self, url: &Placed<String>, template: &Template) {
        for part in &template.parts {
            let written = Template {
                parts: vec![part.clone()],
            }
            .to_string();
            let Some(name) = written
                .strip_suffix("?}")
                .and_then(|rest| rest.strip_prefix('{'))
            else {
                continue;
            };
            let start = url.value.find(&written).unwrap_or_default();
            let (before, _) = url.value.split_at(start);
            let Some((_, query)) = before.split_once('?') else {
                continue;
            };
            let Some(key) = query
                .rsplit('&')
                .next()
                .and_then(|pair| pair.strip_suffix('='))
            else {
                continue;
            };
            let span = self.findings.within(url, &(start..start + written.len()));
            self.findings.warning(
                span,
                format!("without `{name}`, `{key}=` is sent"),
                "leaves only itself out",
                format!("write `query: {{{key}: \"{written}\"}}`, which leaves the whole pair out"),
            );
        }
    }
}
