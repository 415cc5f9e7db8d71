//! The answer of a call as the result of `tools/call`.

use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;

use toolq_core::types::{CallAnswer, ResultContent};
use toolq_mcp::{CallToolResult, ContentBlock, ResourceContents};

/// The key of the status in `_meta`: the same word as in the session log.
const STATUS_KEY: &str = "dev.toolq/status";

/// What a client reads if a server hasn't sent the structured content that its tool's schema promises.
const MISSING_STRUCTURED_CONTENT: &str = "The tool has done its work, but its server sent no structured content that fits into `max_output`, which clients \
     require here. What it answered:";

/// A content block of Anthropic. Those of MCP go out as they are.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnswerBlock {
    Text { text: String },
    Image { source: MediaSource },
    Document { source: MediaSource },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MediaSource {
    Base64 { media_type: String, data: String },
    Text { data: String },
    Url { url: String },
}

/// Where the structured content of a tool's results comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StructuredSource {
    /// The tool list doesn't promise any.
    None,
    /// The text, which the tool's own output schema describes.
    Text,
    /// What the tool's server has sent beside the text.
    Server,
}

/// Returns the result with this answer. Clients refuse a result without the structured content that they were promised,
/// so such a result is an error that says so.
pub(crate) fn call_result(answer: &CallAnswer, source: StructuredSource) -> CallToolResult {
    let for_clients = answer.for_clients.as_deref();
    let own_blocks = for_clients.and_then(|content| content.blocks.as_ref());
    let mut content = match (&answer.content, own_blocks) {
        (_, Some(blocks)) | (ResultContent::Blocks(blocks), None) => {
            blocks.iter().map(|block| content_block(block)).collect()
        }
        (ResultContent::Text(text), None) => vec![text_block(text.clone())],
    };
    let status = answer.report.status.as_str().into();
    let structured_content = match (source, content.first()) {
        _ if answer.is_error => None,
        (StructuredSource::Text, Some(ContentBlock::Text { text })) => {
            RawValue::from_string(text.clone()).ok()
        }
        (StructuredSource::Server, _) => for_clients.and_then(|content| content.structured.clone()),
        _ => None,
    };
    let lacks_promised = source == StructuredSource::Server && structured_content.is_none();
    if lacks_promised && !answer.is_error {
        content.insert(0, text_block(MISSING_STRUCTURED_CONTENT.to_owned()));
    }
    CallToolResult {
        meta: [(STATUS_KEY.to_owned(), status)].into_iter().collect(),
        content,
        structured_content,
        is_error: answer.is_error || lacks_promised,
    }
}

fn text_block(text: String) -> ContentBlock {
    ContentBlock::Text { text }
}

/// Returns a result that says why a call wasn't even tried.
pub(crate) fn refusal(text: String) -> CallToolResult {
    CallToolResult {
        meta: Map::new(),
        content: vec![text_block(text)],
        structured_content: None,
        is_error: true,
    }
}

/// A block that MCP can't express is given as its JSON, so that nothing is lost.
fn content_block(block: &RawValue) -> ContentBlock {
    match serde_json::from_str(block.get()) {
        Ok(AnswerBlock::Text { text: content }) => text_block(content),
        Ok(AnswerBlock::Image {
            source: MediaSource::Base64 { media_type, data },
        }) => ContentBlock::Image {
            data,
            mime_type: media_type,
            more: Map::new(),
        },
        Ok(AnswerBlock::Document {
            source: MediaSource::Base64 { media_type, data },
        }) => ContentBlock::Resource {
            resource: ResourceContents {
                uri: "toolq:document".to_owned(),
                mime_type: Some(media_type),
                text: None,
                blob: Some(data),
                more: Map::new(),
            },
            more: Map::new(),
        },
        Ok(AnswerBlock::Document {
            source: MediaSource::Text { data },
        }) => text_block(data),
        Ok(
            AnswerBlock::Image {
                source: MediaSource::Url { url },
            }
            | AnswerBlock::Document {
                source: MediaSource::Url { url },
            },
        ) => text_block(url),
        Ok(AnswerBlock::Image { .. }) => text_block(block.get().to_owned()),
        Err(_) => match serde_json::from_str(block.get()) {
            Ok(ContentBlock::Unknown) | Err(_) => text_block(block.get().to_owned()),
            Ok(block) => block,
        },
    }
}

// How far a call is, in the numbers of MCP: each must be greater than the last.

/// The smallest part of the work that a total is computed from.
const MIN_FRACTION: f64 = 0.001;

/// The progress of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallProgress {
    last: Option<f64>,
    /// What the numbers are out of, once the tool has said which part of its work is done. Until then, messages are counted.
    total: Option<f64>,
}

impl CallProgress {
    /// Returns the number for the next message, and what it is out of, if that is known. `fraction` is the part of the
    /// work that is done, from 0 to 1, if the tool says so.
    pub(crate) fn advance(&mut self, fraction: Option<f64>) -> (f64, Option<f64>) {
        if let Some(fraction) = fraction {
            self.total = self.total.or_else(|| self.choose_total(fraction));
        }
        let next = match (self.total, self.last) {
            (Some(total), None) => fraction.unwrap_or(0.0) * total,
            // A message that says nothing about the progress is still worth reading.
            (Some(total), Some(last)) => {
                let reached = fraction.map_or(last, |fraction| fraction * total);
                reached.max(last.next_up())
            }
            (None, last) => last.unwrap_or(0.0) + 1.0,
        };
        self.last = Some(next);
        (next, self.total)
    }

    /// Returns a total of which `fraction` is more than what was counted, if that isn't too little to tell.
    fn choose_total(&self, fraction: f64) -> Option<f64> {
        match self.last {
            None => Some(1.0),
            Some(counted) => (fraction >= MIN_FRACTION).then(|| (counted + 1.0) / fraction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{CallKind, CallReport, Status};

    #[test]
    fn every_kind_of_block_reaches_the_client() {
        let blocks = [
            r#"{"type":"text","text":"a"}"#,
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
            r#"{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}"#,
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"BBBB"}}"#,
            r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"b"}}"#,
            r#"{"type":"search_result","n":12345678901234567890.10}"#,
            r#"{"type":"audio","mimeType":"audio/wav","data":"CCCC","annotations":{"priority":0.5}}"#,
            r#"{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"c"}}"#,
            r#"{"type":"resource_link","uri":"a:c","name":"c","title":"C","size":3,"_meta":{"d":1}}"#,
        ];
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        let answer = CallAnswer {
            tool_use_id: "c".to_owned(),
            tool_name: "t".to_owned(),
            content: ResultContent::Blocks(blocks.map(raw).into()),
            is_error: true,
            for_clients: None,
            report: CallReport {
                status: Status::Failed,
                ..CallReport::default()
            },
            has_number_id: false,
            kind: CallKind::Function,
        };
        let result = serde_json::to_value(call_result(&answer, StructuredSource::None)).unwrap();
        assert_eq!(result["isError"], true);
        assert_eq!(result["_meta"]["dev.toolq/status"], "failed");
        let content = result["content"].as_array().unwrap();
        assert_eq!(content[0]["text"], "a");
        assert_eq!(content[1]["mimeType"], "image/png");
        assert_eq!(content[2]["text"], "https://example.com/a.png");
        assert_eq!(content[3]["resource"]["blob"], "BBBB");
        assert_eq!(content[4]["text"], "b");
        assert_eq!(content[5]["text"], blocks[5]);
        for index in 6..9 {
            let block: serde_json::Value = serde_json::from_str(blocks[index]).unwrap();
            assert_eq!(content[index], block);
        }
    }
}

#[cfg(test)]
mod call_progress_tests {
    use super::*;

    #[test]
    fn progress_always_grows() {
        for fractions in [
            [None, None, Some(0.5), None],
            [None, Some(0.0), Some(0.1), Some(0.9)],
            [Some(0.0), None, None, Some(0.3)],
            [Some(0.5), Some(0.2), None, Some(1.0)],
        ] {
            let mut progress = CallProgress::default();
            let steps = fractions.map(|fraction| progress.advance(fraction));
            assert!(steps.is_sorted_by(|one, next| one.0 < next.0), "{steps:?}");
            let mut known: Vec<_> = steps.iter().filter_map(|step| step.1).collect();
            known.dedup();
            assert!(known.len() <= 1, "{steps:?}");
        }
    }

    #[test]
    fn a_fraction_counts_also_after_messages_that_say_nothing_about_the_progress() {
        let mut progress = CallProgress::default();
        assert_eq!(progress.advance(None), (1.0, None));
        assert_eq!(progress.advance(Some(0.0)), (2.0, None));
        for fraction in [0.25, 0.5, 1.0] {
            let (reached, total) = progress.advance(Some(fraction));
            assert_eq!((reached, total), (fraction * 12.0, Some(12.0)));
        }
    }
}
