//! Finds tabs in the indentation, where YAML 1.2 has only spaces (section 6.1). The library finds most of them itself, but treats
//! one before the first entry of a nested list or table as a space.

use serde_saphyr::granit_parser::{Scanner, StrInput, TokenType};

use crate::types::{FileProblem, Span};

/// Returns a problem for each tab that indents a list or table of `text`, up to the first error of its syntax.
pub(crate) fn find_indenting_tabs(text: &str) -> Vec<FileProblem> {
    if !text.contains('\t') {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for token in Scanner::new(StrInput::new(text)).map_while(Result::ok) {
        let begins_block = matches!(
            token.token_type(),
            TokenType::BlockSequenceStart | TokenType::BlockMappingStart
        );
        let start = token.span().start.byte_offset().filter(|_| begins_block);
        if let Some(tab) = start.and_then(|start| find_tab_before(text, start)) {
            let span = Span { start: tab, len: 1 };
            let problem = FileProblem::error(span, "a tab can't be indentation", "this tab");
            problems.push(problem.with_hint("indent with spaces"));
        }
    }
    problems
}

/// Returns where the first tab is among the blanks right before `start`.
fn find_tab_before(text: &str, start: usize) -> Option<usize> {
    let before = text.get(..start)?;
    let blanks_start = before.trim_end_matches([' ', '\t']).len();
    Some(blanks_start + before[blanks_start..].find('\t')?)
}

#[cfg(test)]
mod tests {
    use crate::tools_file::yaml::parse_yaml;

    #[test]
    fn a_tab_after_spaces_is_no_indentation() {
        for (text, tab) in [
            ("a:\n  \tb: 1\n", 5),
            ("a:\n \t b: 1\n    c: 2\n", 4),
            ("a:\n  \t- b\n", 5),
            ("\ta: 1\n", 0),
            ("- \tb: 1\n", 2),
            ("-\tb: 1\n", 1),
            ("a: \"x\"\nb:\n  \t\"c\": |\n      d\n", 12),
            ("a:\n  \t&x b: *x\n", 5),
        ] {
            let problems = parse_yaml(text).expect_err(text);
            assert_eq!(problems[0].message, "a tab can't be indentation", "{text}");
            assert_eq!((problems[0].span.start, problems.len()), (tab, 1), "{text}");
        }
    }

    /// Every tab that separates, or that belongs to a text, is valid.
    #[test]
    fn other_tabs_are_accepted() {
        for (text, json) in [
            ("a:\tb\n", r#"{"a":"b"}"#),
            ("a:\n  \tb\n", r#"{"a":"b"}"#),
            ("-\tb\n-\t[1]\n", r#"["b",[1]]"#),
            ("a: |\n  \tb\n", r#"{"a":"\tb\n"}"#),
            ("a: \"b\n  \tc\"\n", r#"{"a":"b c"}"#),
            ("a: 1 \t# c\n \t\nb: {c:\t2}\n", r#"{"a":1,"b":{"c":2}}"#),
            ("a:\n  {b: 1,\n  \tc: 2}\n", r#"{"a":{"b":1,"c":2}}"#),
        ] {
            assert_eq!(
                parse_yaml(text).expect(text).to_json().to_string(),
                json,
                "{text}"
            );
        }
    }
}
