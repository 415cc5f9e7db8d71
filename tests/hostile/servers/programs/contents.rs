//! Results that have the right form and odd contents.

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, Says, Served};
use crate::servers::script::legacy;
use crate::servers::wire::{Request, Wire, tools};

hostile_servers! {
    fails_without_a_word => legacy().on_call(|wire, call| answer(wire, call, json!({"isError": true}))).ends(Fails("reported an error"), Fails("reported an error"));
    answers_with_nothing => legacy().on_call(|wire, call| answer(wire, call, json!({}))).ends(Says(""), Says(""));
    sends_unknown_contents => legacy().on_call(|wire, call| {
        answer(wire, call, json!({"content": [{"type": "hologram", "data": [1]}, {"type": "text", "text": "and text"}]}));
    }).ends(Says("[content of an unknown type]\nand text"), Says("and text"));
    sends_contents_without_their_parts => legacy().on_call(|wire, call| {
        let content = json!([{"type": "text"}, {"type": "text", "text": 5}, {"type": "image"}, {}, 5, null, {"type": "text", "text": "and text"}]);
        answer(wire, call, json!({ "content": content }));
    }).ends(Says("and text"), Says("and text"));
    sends_content_that_is_no_list => legacy().on_call(|wire, call| answer(wire, call, json!({"content": "done"}))).ends(Says("done"), Says("done"));
    sends_a_huge_image => legacy().memory_limit(100).on_call(|wire, call| {
        let content = json!([{"type": "image", "mimeType": "image/png", "data": "A".repeat(2 << 20)}]);
        answer(wire, call, json!({ "content": content }));
    }).ends(Says("[an image of type image/png"), Says("[an image of type image/png"));
    sends_data_that_is_no_base64 => legacy().on_call(|wire, call| {
        let content = json!([{"type": "audio", "mimeType": "../../x", "data": "%%%"}, {"type": "resource", "resource": {"uri": "file:///etc/passwd", "blob": "\u{0}"}}]);
        answer(wire, call, json!({ "content": content }));
    }).ends(Says("can't be decoded"), Says("can't be decoded"));
    links_to_everything => legacy().on_call(|wire, call| {
        let link = json!({"type": "resource_link", "uri": "http://127.0.0.1:1/steal?x", "name": null});
        answer(wire, call, json!({"content": [link, {"type": "resource", "resource": {"uri": "file:///etc/passwd"}}]}));
    }).ends(Says("[the resource file:///etc/passwd]"), Says("[the resource"));
    sends_a_text_of_3_mb => legacy().memory_limit(100).on_call(|wire, call| {
        answer(wire, call, json!({"content": [{"type": "text", "text": "x".repeat(3 << 20)}]}));
    }).ends(Says("xxx"), Says("xxx"));
    sends_10_000_contents => legacy().memory_limit(100).on_call(|wire, call| {
        let content = vec![json!({"type": "text", "text": "y"}); 10_000];
        answer(wire, call, json!({ "content": content }));
    }).ends(Says("y\ny"), Says("y\ny"));
    violates_its_output_schema => legacy().locked().on_list(|wire, request| {
        let mut tools = tools();
        tools[1]["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        wire.answer(request, json!({ "tools": tools }));
    }).on_call(|wire, call| answer(wire, call, json!({"content": [], "structuredContent": {"n": "one"}}))).ends(Fails("/n"), Fails("/n"));
    adds_unknown_members => legacy().on_call(|wire, call| {
        let mut result = call.result();
        result["_meta"] = json!({"x/y": [[[]]]});
        result["__proto__"] = json!({"isError": true});
        result["content"][0]["annotations"] = json!(5);
        answer(wire, call, result);
    }).ends(Served, Served);
}

fn answer(wire: &mut Wire, call: &Request, result: Value) {
    call.apply();
    wire.answer(call, result);
}
