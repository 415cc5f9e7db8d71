//! An MCP server that is a shell script.

/// Returns a server that runs `begin` first. Each answer is a method, or another part of a request, and a script that sets
/// `result` for it; other requests are refused.
pub fn shell_server(begin: &str, answers: &[(&str, &str)]) -> String {
    let cases = answers
        .iter()
        .map(|(request, script)| format!("  *'\"{request}\"'*)\n    {script} ;;\n"));
    let cases = cases.collect::<Vec<_>>().concat();
    format!(
        r#"#!/bin/sh
{begin}
while read -r line; do
  rest=${{line#*'"id":'}}
  id=${{rest%%,*}}
  case $line in
  *'"method":"initialize"'*)
    result='{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
{cases}  *)
    printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"what?"}}}}\n' "$id"
    continue ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done
"#
    )
}
