//! Classifies the elements of an argument list as program names, code or data. Values from the input must not become
//! part of a program name or of code, since they would be executed.

#[cfg(test)]
mod tests;

use crate::tools_file::argv::programs::{
    OperandKind, OptionValue, ProgramRule, base_name, find_rules, is_one_of, is_steering_variable,
    runs_elsewhere,
};
use crate::types::CommandWrapper;

/// The role of an element of `argv`, the more dangerous ones last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ArgRole {
    /// Anything that isn't listed below.
    Data,
    /// A text that some values turn into code, but no path.
    PlainTextOrPath,
    /// A text that some values turn into code: only values of a plain form are data.
    PlainText,
    /// The name of a file or module that an interpreter loads.
    LoadedFile,
    /// The file that an interpreter executes.
    Script,
    /// Code that a program executes.
    Code,
    /// The name of a program.
    Program,
}

/// What the table of programs says about an argument list.
pub(crate) struct ArgvReading<'a> {
    pub(crate) argv: &'a [&'a str],
    /// A role for each element.
    pub(crate) roles: Vec<ArgRole>,
    pub(crate) programs: Vec<ProgramReading<'a>>,
}

/// What one line of the table says about the arguments of a program.
pub(crate) struct ProgramReading<'a> {
    pub(crate) rule: &'static ProgramRule,
    /// The position of the program.
    pub(crate) position: usize,
    /// The positions of the arguments that are more than data.
    pub(crate) roles: Vec<(usize, ArgRole)>,
    pub(crate) options: Vec<usize>,
    pub(crate) operands: Vec<usize>,
    /// The programs that it starts. Their names can be parts of elements.
    pub(crate) started: Vec<(usize, &'a str)>,
    /// The files that it runs or loads.
    pub(crate) files: Vec<&'a str>,
    /// What stands for what it reads from stdin.
    pub(crate) stdin_mark: Option<&'a str>,
    /// Whether its arguments contain or name what it runs.
    pub(crate) is_given_code: bool,
    /// Whether an option says that it runs its stdin.
    pub(crate) is_told_to_run_stdin: bool,
    /// Whether its operands tell it to do something.
    pub(crate) has_rest: bool,
}

/// Returns the role of each element of `argv`, in order.
fn classify_args(argv: &[&str]) -> Vec<ArgRole> {
    ArgvReading::new(argv).roles
}

/// Returns the role of each element of `argv` in this wrapper: the stricter one of what it is by itself, and of what the
/// wrapper makes of it.
pub(crate) fn classify_wrapped_args(
    argv: &[&str],
    wrapper: Option<&CommandWrapper>,
) -> Vec<ArgRole> {
    let mut roles = classify_args(argv);
    if let Some(wrapper) = wrapper {
        let wrapped: Vec<&str> = wrapper
            .argv
            .iter()
            .map(String::as_str)
            .chain(argv.iter().copied())
            .collect();
        let in_wrapper = classify_args(&wrapped).split_off(wrapped.len() - argv.len());
        for (role, in_wrapper) in roles.iter_mut().zip(in_wrapper) {
            *role = (*role).max(in_wrapper);
        }
    }
    roles
}

/// Returns the program of a wrapper that makes code of the arguments after its own.
pub(crate) fn find_code_wrapper<'a>(wrapper: &[&'a str]) -> Option<&'a str> {
    let wrapped = [wrapper, &["{x}"]].concat();
    let reading = ArgvReading::new(&wrapped);
    let makes_code = |program: &&ProgramReading<'_>| {
        program
            .roles
            .iter()
            .any(|(position, role)| *position == wrapper.len() && *role >= ArgRole::Script)
    };
    let program = reading.programs.iter().find(makes_code)?;
    wrapper.get(program.position).copied()
}

/// Returns the program in a wrapper that hands over to a daemon or another host.
pub(crate) fn find_handover(wrapper: &[&str]) -> Option<String> {
    wrapper
        .iter()
        .map(|element| base_name(element))
        .find(|name| runs_elsewhere(name))
}

impl<'a> ArgvReading<'a> {
    pub(crate) fn new(argv: &'a [&'a str]) -> Self {
        let mut reading = Self {
            argv,
            roles: vec![ArgRole::Data; argv.len()],
            programs: Vec::new(),
        };
        if let Some(program) = argv.first() {
            reading.start(program, 0);
        }
        reading
    }

    /// Marks the program that the element at `position` names, and everything that it executes.
    fn start(&mut self, program: &'a str, position: usize) {
        if self.roles[position] == ArgRole::Program {
            return;
        }
        self.roles[position] = ArgRole::Program;
        let mut is_wrapper = false;
        for rule in find_rules(&base_name(program)) {
            let Some(reading) = ProgramReading::new(rule, self.argv, position) else {
                continue;
            };
            for (position, role) in &reading.roles {
                self.roles[*position] = self.roles[*position].max(*role);
            }
            for (position, program) in &reading.started {
                self.start(program, *position);
            }
            is_wrapper |= rule.is_wrapper();
            self.programs.push(reading);
        }
        self.start_interpreters(position + 1, is_wrapper);
    }

    /// Marks interpreters behind options that the table doesn't have, or behind programs that it doesn't have. After a wrapper
    /// the name is enough; elsewhere, an option that takes code must follow.
    fn start_interpreters(&mut self, from: usize, is_wrapper: bool) {
        for position in from..self.argv.len() {
            let element = self.argv[position];
            let next = self.argv.get(position + 1);
            let is_started = find_rules(&base_name(element)).any(|rule| {
                let runs_next = || next.is_some_and(|next| takes_code(rule, next));
                rule.is_interpreter() && (is_wrapper || runs_next())
            });
            if is_started {
                self.start(element, position);
            }
        }
    }
}

/// Whether `element` is an option of the rule with which something behind it is code.
fn takes_code(rule: &ProgramRule, element: &str) -> bool {
    rule.find_option(element)
        .is_some_and(|(option, _)| option.value.is_code())
}

impl<'a> ProgramReading<'a> {
    /// Returns `None` if the rule isn't about these arguments.
    fn new(rule: &'static ProgramRule, argv: &'a [&'a str], position: usize) -> Option<Self> {
        let (from, end) = rule.find_scope(argv, position + 1)?;
        let mut reader = ArgumentReader {
            argv: &argv[..end],
            next: from,
            in_options: true,
            awaits_code: false,
            reading: Self {
                rule,
                position,
                roles: Vec::new(),
                options: Vec::new(),
                operands: Vec::new(),
                started: Vec::new(),
                files: Vec::new(),
                stdin_mark: None,
                is_given_code: false,
                is_told_to_run_stdin: false,
                has_rest: false,
            },
        };
        while reader.next < end && reader.read_next() {}
        let mut reading = reader.reading;
        if !reading.meets_conditions(argv) {
            return None;
        }
        if rule.makes_shell_text() {
            let all = (from..end).map(|position| (position, ArgRole::Code));
            reading.roles.extend(all);
        }
        Some(reading)
    }

    fn meets_conditions(&self, argv: &[&str]) -> bool {
        let is_there = |options: &[usize], names: &[&str]| {
            options
                .iter()
                .map(|position| argv[*position])
                .any(|option| is_one_of(option, names))
        };
        let first_operand = self.operands.first().copied().unwrap_or(argv.len());
        let leading = self
            .options
            .partition_point(|position| *position < first_operand);
        let required = &self.rule.only_with;
        (required.is_empty() || is_there(&self.options[..leading], required))
            && !is_there(&self.options, &self.rule.not_with)
    }
}

/// Reads the arguments of a program, one by one.
struct ArgumentReader<'a> {
    argv: &'a [&'a str],
    next: usize,
    in_options: bool,
    /// Whether the next operand is code.
    awaits_code: bool,
    reading: ProgramReading<'a>,
}

impl<'a> ArgumentReader<'a> {
    /// Reads an argument, with its value if it is an option. Returns whether more of them belong to the program itself.
    fn read_next(&mut self) -> bool {
        let position = self.next;
        let element = self.argv[position];
        self.next += 1;
        let rule = self.reading.rule;
        if self.in_options && (element == "--" || element == "-" && rule.ends_options_with_dash()) {
            self.in_options = false;
            return true;
        }
        if self.in_options && rule.has_option_form(element) {
            return self.read_option(position);
        }
        if rule.takes_variables
            && let Some(name) = assigned_variable(element)
        {
            if is_steering_variable(name) {
                self.mark(position, ArgRole::Code);
            }
            return true;
        }
        // BSD's `sed -i ''`.
        element.is_empty() || self.read_operand(position)
    }

    fn read_option(&mut self, position: usize) -> bool {
        let element = self.argv[position];
        let rule = self.reading.rule;
        self.reading.options.push(position);
        let Some((option, value)) = rule.find_option(element) else {
            // The value chooses the option.
            let is_chosen = element.contains('{') && !element.contains('=');
            if is_chosen && rule.is_interpreter() && rule.runs_code() {
                self.mark(position, ArgRole::Code);
            }
            return true;
        };
        self.read_value(option.value, position, value);
        // In a cluster such as `-pe` or `-co`, the last option may take a value, too.
        let is_flag = matches!(option.value, OptionValue::Code | OptionValue::CodeInOperand);
        if let (true, Some(value)) = (is_flag, value)
            && let Some(last) = value.chars().last()
            && let Some((last, _)) = rule.find_option(&format!("-{last}"))
        {
            self.read_value(last.value, position, None);
        }
        !rule.last.contains(&option.name)
    }

    /// Reads the value of an option, which follows unless it is in the same element.
    fn read_value(&mut self, kind: OptionValue, position: usize, attached: Option<&'a str>) {
        match kind {
            OptionValue::CodeInOperand => {
                self.awaits_code = true;
                return;
            }
            OptionValue::CodeFromStdin => {
                self.reading.is_told_to_run_stdin = true;
                return;
            }
            OptionValue::CodeToTheEnd => {
                self.reading.is_given_code = true;
                (position..self.argv.len()).for_each(|position| self.mark(position, ArgRole::Code));
                self.next = self.argv.len();
                return;
            }
            OptionValue::OptionalMark => {
                self.reading.stdin_mark = Some(attached.unwrap_or("{}"));
                return;
            }
            _ => {}
        }
        let position = if attached.is_some() {
            position
        } else {
            self.next
        };
        let value = attached.or_else(|| self.argv.get(position).copied());
        match kind {
            OptionValue::Code => {
                self.reading.is_given_code = true;
                self.mark(position, ArgRole::Code);
            }
            OptionValue::Program => {
                self.reading.is_given_code = true;
                self.reading
                    .started
                    .extend(value.map(|program| (position, program)));
            }
            OptionValue::ProgramFile | OptionValue::LoadedFile => {
                self.reading.is_given_code |= kind == OptionValue::ProgramFile;
                self.reading.files.extend(value);
                self.mark(position, ArgRole::LoadedFile);
            }
            OptionValue::Mark => self.reading.stdin_mark = value,
            _ => {}
        }
        if attached.is_none() {
            self.next += if kind == OptionValue::TwoData { 2 } else { 1 };
        }
    }

    fn read_operand(&mut self, position: usize) -> bool {
        let element = self.argv[position];
        self.reading.operands.push(position);
        if self.awaits_code {
            self.reading.is_given_code = true;
            self.mark(position, ArgRole::Code);
            return false;
        }
        let number = self.reading.operands.len();
        let Some(operand) = self
            .reading
            .rule
            .operand
            .filter(|operand| operand.covers(number))
        else {
            return true;
        };
        let has_other_code = self.reading.is_given_code || self.reading.is_told_to_run_stdin;
        match operand.kind {
            OperandKind::Program => {
                self.reading.is_given_code = true;
                self.reading.started.push((position, element));
                false
            }
            OperandKind::Script => {
                if !has_other_code {
                    self.reading.is_given_code = true;
                    self.reading.files.push(element);
                    self.mark(position, ArgRole::Script);
                }
                false
            }
            OperandKind::Code => {
                if !has_other_code || operand.and_all_after {
                    self.reading.is_given_code = true;
                    self.mark(position, ArgRole::Code);
                }
                true
            }
            OperandKind::Plain | OperandKind::PlainOrPath => {
                let is_path = operand.kind == OperandKind::PlainOrPath;
                let role = if is_path {
                    ArgRole::PlainTextOrPath
                } else {
                    ArgRole::PlainText
                };
                if element.contains('{') {
                    self.mark(position, role);
                }
                true
            }
            OperandKind::ShellText | OperandKind::Rest => {
                self.reading.has_rest = true;
                false
            }
        }
    }

    fn mark(&mut self, position: usize, role: ArgRole) {
        if position < self.argv.len() {
            self.reading.roles.push((position, role));
        }
    }
}

/// Returns the name of the variable that `element` sets for the program behind it.
fn assigned_variable(element: &str) -> Option<&str> {
    let (name, _) = element.split_once('=')?;
    (!name.contains(['{', '/', '-'])).then_some(name)
}
