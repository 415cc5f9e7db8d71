//! Finds the tags of a document. Deserializing rejects unknown tags, but applies YAML's own (`!!str`, `!!binary`) without a word.

use serde_saphyr::granit_parser::{Event, Parser};

use crate::tools_file::yaml::simple_yaml::to_span;
use crate::types::FileProblem;

const NO_TAGS_HINT: &str = "write the value without a tag; put it in quotes to make it text";

/// Returns a problem for each tagged value of `text`, up to the first error of its syntax.
pub(crate) fn find_tags(text: &str) -> Vec<FileProblem> {
    if !text.contains('!') {
        return Vec::new();
    }
    let mut parser = Parser::new_from_str(text);
    let mut problems = Vec::new();
    while let Some(Ok((event, span))) = parser.next_event() {
        let is_tagged = match event {
            Event::Scalar(_, _, _, tag)
            | Event::SequenceStart(_, _, tag)
            | Event::MappingStart(_, _, tag) => tag.is_some(),
            Event::StreamEnd => break,
            _ => false,
        };
        if let Some(span) = to_span(&span.tag_span().unwrap_or(span)).filter(|_| is_tagged) {
            let problem = FileProblem::error(span, "tags are not supported", "this tag");
            problems.push(problem.with_hint(NO_TAGS_HINT));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use crate::tools_file::yaml::parse_yaml;

    #[test]
    fn a_tag_is_refused_wherever_it_stands() {
        for value in [
            "!!int \"1\"",
            "!!int\n  \"1\"",
            "!!str |\n  1",
            "! |\n  1",
            "!!binary |\n  aGVsbG8=",
            "!!float # c\n  \"1.5\"",
            "!!null\n  \"\"",
            "!!map\n  b: 1",
            "!!seq\n  - 1",
            "!<tag:yaml.org,2002:int> \"1\"",
            "[!!str 1]",
            "&x !!str 1",
            "{!!str 1: 1}",
        ] {
            let problems = parse_yaml(&format!("a: {value}\n")).expect_err(value);
            assert_eq!(problems[0].message, "tags are not supported", "{value}");
        }
        // The closing bracket may stand where strict YAML has it indented.
        let problems = parse_yaml("a:\n  b: [\n  1\n  ]\n  c: !!str 1\n").expect_err("tagged");
        assert_eq!(problems[0].message, "tags are not supported");
        for text in ["a: hi!", "a: \"!!int 1\"", "a: b !c", "a: |\n  !x"] {
            assert!(parse_yaml(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_error_of_a_tag_points_at_the_tag() {
        for (text, tags) in [
            ("a: !foo bar", &["!foo"][..]),
            (
                "é: !<tag:x,2002:a>\n  - !b 1\n  - ! c",
                &["!<tag:x,2002:a>", "!b", "!"],
            ),
            ("a: &x !!map\n  b: 1", &["!!map"]),
        ] {
            let problems = parse_yaml(text).expect_err(text);
            let spans = problems.iter().map(|problem| problem.span);
            let found: Vec<&str> = spans.map(|span| &text[span.start..][..span.len]).collect();
            assert_eq!(found, tags, "{text}");
        }
    }

    /// It took minutes when the text before each value was searched for a tag.
    #[test]
    fn a_long_line_without_spaces_is_read_in_linear_time() {
        let entries: Vec<String> = (0..20_000).map(|n| format!("\"k{n}\":1e3")).collect();
        assert!(parse_yaml(&format!("{{{}}}", entries.join(","))).is_ok());
    }
}
