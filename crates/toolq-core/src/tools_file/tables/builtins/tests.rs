use std::path::Path;

use crate::tools_file::parse_tools_file;

#[test]
fn defaults_limit_the_reader_of_outputs() {
    let text = r"
builtins: [read_output]
defaults: {max_output: 5KiB}
tools: {a: {input_schema: {type: object}, effect: read, command: [date]}}
";
    let parsed = parse_tools_file(text, Path::new("/"), Path::new("/"));
    let tools = parsed.tools.unwrap();
    let reader = tools.get("read_output").unwrap();
    let properties = &reader.input_schema["properties"];
    assert_eq!(properties["limit"]["maximum"], 5 << 10);
    let limit = properties["limit"]["description"].as_str().unwrap();
    assert!(limit.ends_with("Default: 5120."), "{limit}");
    assert_eq!(tools.output_reader(), Some("read_output"));
}
