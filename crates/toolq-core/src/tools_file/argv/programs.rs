//! The table of well-known programs, `programs.txt`, which says what its lines mean.

use std::collections::HashMap;
use std::sync::LazyLock;

type Words = Vec<&'static str>;

/// Where a program looks for what it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StartPlace {
    #[default]
    Path,
    Packages,
    Elsewhere,
}

/// What a line of the table says about its programs.
#[derive(Debug, Default)]
pub(crate) struct ProgramRule {
    names: Words,
    /// The words of a subcommand, each in all its spellings.
    subcommand: Vec<Words>,
    pub(crate) options: Vec<KnownOption>,
    /// Options behind whose value no others follow.
    pub(crate) last: Words,
    pub(crate) operand: Option<Operand>,
    pub(crate) takes_variables: bool,
    pub(crate) only_with: Words,
    pub(crate) not_with: Words,
    until: Option<&'static str>,
    /// Whether it runs its stdin if it is given nothing else to run.
    pub(crate) runs_stdin: bool,
    pub(crate) stdin_unless: Words,
    pub(crate) starts_from: StartPlace,
    instead: Option<&'static str>,
    steering_variables: Words,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownOption {
    pub(crate) name: &'static str,
    pub(crate) value: OptionValue,
}

/// What the value of an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionValue {
    Code,
    /// Not the value is code, but the first operand behind the option.
    CodeInOperand,
    /// Everything behind the option is code.
    CodeToTheEnd,
    /// Stdin is run in place of an operand.
    CodeFromStdin,
    Program,
    /// A file that is run in place of an operand.
    ProgramFile,
    LoadedFile,
    /// The text that stands for what is read from stdin.
    Mark,
    /// The same, but without a value in the same argument it is `{}`.
    OptionalMark,
    Data,
    TwoData,
}

/// What some operands of a program are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    pub(crate) kind: OperandKind,
    pub(crate) first: usize,
    pub(crate) and_all_after: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum OperandKind {
    Program,
    Script,
    Code,
    /// The beginning of a text that a shell runs.
    #[strum(to_string = "text")]
    ShellText,
    Plain,
    PlainOrPath,
    /// Data, with what follows as its arguments.
    Rest,
}

impl Operand {
    /// Whether it is about the operand of this number, counted from 1.
    pub(crate) fn covers(&self, number: usize) -> bool {
        number == self.first || self.and_all_after && number > self.first
    }
}

impl ProgramRule {
    /// Returns where the arguments begin and end that the rule is about. `after` is the index behind the program.
    pub(crate) fn find_scope(&self, argv: &[&str], after: usize) -> Option<(usize, usize)> {
        let mut from = after;
        for spellings in &self.subcommand {
            let is_word = |element: &&str| spellings.contains(element);
            from += argv[from..].iter().position(is_word)? + 1;
        }
        let is_mark = |element: &&str| self.until.is_some_and(|mark| element.starts_with(mark));
        let length = argv[from..].iter().position(is_mark);
        Some((from, length.map_or(argv.len(), |length| from + length)))
    }

    /// Whether `element` has the form of an option of this program.
    pub(crate) fn has_option_form(&self, element: &str) -> bool {
        let has_plus_options = || self.options.iter().any(|known| known.name.starts_with('+'));
        element.len() > 1
            && (element.starts_with('-') || element.starts_with('+') && has_plus_options())
    }

    /// Returns the option that `element` is, with its value if that is in the same element.
    pub(crate) fn find_option<'e>(
        &self,
        element: &'e str,
    ) -> Option<(KnownOption, Option<&'e str>)> {
        let (name, value) = match element.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (element, None),
        };
        if let Some(known) = self.option_named(|known| is_same_option(known, name)) {
            return Some((known, value));
        }
        if element.starts_with("--") {
            // GNU programs accept the beginning of a long option.
            let known = self.option_named(|known| name.len() > 3 && known.starts_with(name))?;
            return Some((known, value));
        }
        let value_behind = |known: &str| {
            let value = element.strip_prefix(known)?;
            let is_joined = known.len() <= 2 || value.starts_with('{');
            (is_joined).then_some(value)
        };
        if let Some(known) = self.option_named(|known| value_behind(known).is_some()) {
            return Some((known, value_behind(known.name)));
        }
        if self.option_named(has_one_dash_and_a_word).is_some() {
            return None;
        }
        short_options(element).find_map(|(option, rest)| {
            let known = self.option_named(|known| known.chars().eq(option))?;
            let value = rest.strip_prefix('=').unwrap_or(rest);
            Some((known, (!value.is_empty()).then_some(value)))
        })
    }

    fn option_named(&self, is_meant: impl Fn(&str) -> bool) -> Option<KnownOption> {
        self.options
            .iter()
            .find(|known| is_meant(known.name))
            .copied()
    }

    /// Whether the program exists to run code or scripts.
    pub(crate) fn is_interpreter(&self) -> bool {
        let kind = self.operand.map(|operand| operand.kind);
        matches!(kind, Some(OperandKind::Script | OperandKind::Code))
    }

    /// Whether the program exists to start another one.
    pub(crate) fn is_wrapper(&self) -> bool {
        let kind = self.operand.map(|operand| operand.kind);
        kind == Some(OperandKind::Program)
    }

    /// Whether it can run code that its arguments contain.
    pub(crate) fn runs_code(&self) -> bool {
        let kind = self.operand.map(|operand| operand.kind);
        kind == Some(OperandKind::Code) || self.options.iter().any(|known| known.value.is_code())
    }

    pub(crate) fn makes_shell_text(&self) -> bool {
        let kind = self.operand.map(|operand| operand.kind);
        kind == Some(OperandKind::ShellText)
    }

    /// Whether `-` ends the options, as it does for a shell.
    pub(crate) fn ends_options_with_dash(&self) -> bool {
        let is_shell_option = |known: &KnownOption| known.value == OptionValue::CodeInOperand;
        self.options.iter().any(is_shell_option)
    }
}

impl OptionValue {
    /// Whether something behind the option is code.
    pub(crate) fn is_code(self) -> bool {
        matches!(self, Self::Code | Self::CodeInOperand | Self::CodeToTheEnd)
    }
}

/// Whether `element` is one of `options`, alone, with a value, or in a cluster of short ones.
pub(crate) fn is_one_of(element: &str, options: &[&str]) -> bool {
    let name = element.split_once('=').map_or(element, |(name, _)| name);
    options.iter().any(|known| {
        is_same_option(known, name)
            || *known == "+" && element.starts_with('+')
            || short_options(element).any(|(option, _)| known.chars().eq(option))
    })
}

/// Whether two names of options are the same. Only short ones and those of GNU depend on case.
fn is_same_option(known: &str, name: &str) -> bool {
    known == name || has_one_dash_and_a_word(known) && known.eq_ignore_ascii_case(name)
}

/// Whether an option is one such as `-classpath`. Programs with these have no clusters of short options.
fn has_one_dash_and_a_word(option: &str) -> bool {
    option.len() > 2 && !option.starts_with("--")
}

/// Returns the options in a cluster such as `-lc` or `-e'code'`, each with what follows it.
fn short_options(element: &str) -> impl Iterator<Item = ([char; 2], &str)> {
    let sign = element.chars().next().filter(|sign| "-+".contains(*sign));
    element
        .char_indices()
        .skip(1)
        .take_while(|(_, letter)| letter.is_ascii_alphanumeric())
        .filter_map(move |(at, letter)| Some(([sign?, letter], &element[at + 1..])))
}

static TABLE: LazyLock<ProgramTable> =
    LazyLock::new(|| ProgramTable::parse(include_str!("programs.txt")));

#[derive(Debug, Default)]
struct ProgramTable {
    rules: Vec<ProgramRule>,
    /// The positions in `rules` of those about a program.
    by_name: HashMap<&'static str, Vec<usize>>,
}

/// Returns what the table says about the program of this name, without directory and version.
pub(crate) fn find_rules(name: &str) -> impl Iterator<Item = &'static ProgramRule> {
    TABLE
        .by_name
        .get(name)
        .into_iter()
        .flatten()
        .map(|position| &TABLE.rules[*position])
}

/// Strips the directory from a program, and the version, unless the table has a name with this number: `python3.12` →
/// `python`, `/usr/bin/env` → `env`, `sqlite3` → `sqlite3`.
pub(crate) fn base_name(program: &str) -> String {
    let name = program
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if TABLE.by_name.contains_key(&*name) {
        return name;
    }
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
        .to_owned()
}

/// Whether a daemon or another host runs what this program is given.
pub(crate) fn runs_elsewhere(name: &str) -> bool {
    find_rules(name).any(|rule| rule.starts_from == StartPlace::Elsewhere)
}

/// Returns what to write in place of a value that the program `name` would run.
pub(crate) fn find_replacement(name: &str) -> &'static str {
    find_rules(name).find_map(|rule| rule.instead).unwrap_or(
        "write the text out here, or pass the value to a script as an argument of its own",
    )
}

/// Whether this variable decides what programs load or run, so that no value from an input may set it.
pub(crate) fn is_steering_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_meant = |pattern: &&str| {
        let starts = pattern
            .strip_suffix('*')
            .map(|start| name.starts_with(start));
        let ends = pattern.strip_prefix('*').map(|end| name.ends_with(end));
        starts.or(ends).unwrap_or(*pattern == name)
    };
    find_rules("*").any(|rule| rule.steering_variables.iter().any(is_meant))
}

impl ProgramTable {
    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut parts = line.split('|').map(str::trim);
            let names = parts.next().unwrap_or_default();
            if !names.is_empty() {
                table.rules.push(ProgramRule::named(names));
            }
            let Some(rule) = table.rules.last_mut() else {
                continue;
            };
            for part in parts {
                rule.add(part);
            }
        }
        for (position, rule) in table.rules.iter().enumerate() {
            for name in &rule.names {
                table.by_name.entry(name).or_default().push(position);
            }
        }
        table
    }
}

impl ProgramRule {
    /// Returns a rule about the programs with these names, or about a subcommand of them.
    fn named(names: &'static str) -> Self {
        let (names, subcommand) = names.split_once('/').unwrap_or((names, ""));
        let spellings = |word: &'static str| word.split(',').collect();
        Self {
            names: names.split_ascii_whitespace().collect(),
            subcommand: subcommand.split_ascii_whitespace().map(spellings).collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, property: &'static str) {
        let (name, rest) = property.split_once(' ').unwrap_or((property, ""));
        let words = rest.split_ascii_whitespace();
        match name {
            "run" => self.add_options(rest, OptionValue::Code),
            "run-operand" => self.add_options(rest, OptionValue::CodeInOperand),
            "run-stdin" => self.add_options(rest, OptionValue::CodeFromStdin),
            "run-rest" => self.add_options(rest, OptionValue::CodeToTheEnd),
            "start" => self.add_options(rest, OptionValue::Program),
            "file" => self.add_options(rest, OptionValue::ProgramFile),
            "load" => self.add_options(rest, OptionValue::LoadedFile),
            "take" => self.add_options(rest, OptionValue::Data),
            "take-two" => self.add_options(rest, OptionValue::TwoData),
            "last" => self.last.extend(words),
            "operand" => self.operand = Operand::parse(rest),
            "variables" => self.takes_variables = true,
            "if" => self.only_with.extend(words),
            "unless" => self.not_with.extend(words),
            "until" => self.until = Some(rest),
            "stdin" => self.runs_stdin = true,
            "stdin-unless" => self.stdin_unless.extend(words),
            "insert" => self.add_options(rest, OptionValue::Mark),
            "insert-braces" => self.add_options(rest, OptionValue::OptionalMark),
            "elsewhere" => self.starts_from = StartPlace::Elsewhere,
            "packages" => self.starts_from = StartPlace::Packages,
            "instead" => self.instead = Some(rest),
            "steer" => self.steering_variables.extend(words),
            unknown => debug_assert_eq!(unknown, "a property of the table"),
        }
    }

    fn add_options(&mut self, names: &'static str, value: OptionValue) {
        let names = names.split_ascii_whitespace();
        self.options
            .extend(names.map(|name| KnownOption { name, value }));
    }
}

impl Operand {
    fn parse(text: &str) -> Option<Self> {
        let (kind, number) = text.split_once(' ').unwrap_or((text, "1"));
        let kind = kind.parse();
        debug_assert!(kind.is_ok(), "{text}");
        Some(Self {
            kind: kind.ok()?,
            first: number.trim_end_matches('-').parse().ok()?,
            and_all_after: number.ends_with('-'),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that [`base_name`] would shorten is never found, and a line about nothing changes nothing.
    #[test]
    fn each_line_says_something_about_programs_that_are_found() {
        for rule in &TABLE.rules {
            assert!(
                rule.names.iter().all(|name| base_name(name) == *name),
                "{rule:?}"
            );
            let says_something = !rule.options.is_empty()
                || rule.operand.is_some()
                || rule.runs_stdin
                || rule.starts_from != StartPlace::Path
                || !rule.steering_variables.is_empty();
            assert!(says_something, "{rule:?}");
        }
    }

    #[test]
    fn versions_are_no_part_of_a_name() {
        for (program, name) in [
            ("python3.12", "python"),
            ("/usr/bin/env", "env"),
            ("sqlite3", "sqlite3"),
            ("x86_64", "x86_64"),
            ("linux32", "linux"),
            ("Rscript", "rscript"),
            ("/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so"),
        ] {
            assert_eq!(base_name(program), name);
        }
    }

    #[test]
    fn variables_that_steer_programs_are_known() {
        for name in [
            "MAKEFILES",
            "TAR_OPTIONS",
            "HOME",
            "EXINIT",
            "RSYNC_RSH",
            "RSYNC_PROXY",
            "PGSERVICEFILE",
            "HG",
            "CC",
            "npm_config_script_shell",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "PERL5OPT",
            "PYTHONSTARTUP",
            "http_proxy",
            "KUBE_EDITOR",
            "XDG_CONFIG_HOME",
            "SHELL",
            "LUA_INIT_5_4",
            "GNUMAKEFLAGS",
            "PERLDB_OPTS",
            "ASAN_OPTIONS",
            "CAML_LD_LIBRARY_PATH",
            "JAVA_HOME",
        ] {
            assert!(is_steering_variable(name), "{name}");
        }
        for name in [
            "SCRIPT",
            "QUERY",
            "PATTERN",
            "VALUE",
            "TOKEN",
            "LIMIT",
            "OLD",
            "NAME",
            "PERSON",
            "GITHUB",
            "HOMEPAGE",
            "FILE_PATH",
            "SEARCH_PATH",
            "OPTIONS",
        ] {
            assert!(!is_steering_variable(name), "{name}");
        }
    }
}
