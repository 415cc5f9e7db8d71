//! Reads the token usage that a model API reports.

use crate::json::ParsedObject;
use crate::types::{Api, Usage};

/// Returns the usage of a response, or `None` unless its API reported both input and output tokens.
pub(crate) fn complete_usage(api: Api, usage: &ParsedObject) -> Option<Usage> {
    let [read, written] = match api {
        Api::Anthropic => ["input_tokens", "output_tokens"],
        Api::OpenAiChat => ["prompt_tokens", "completion_tokens"],
    };
    parse_count(usage, read).and(parse_count(usage, written))?;
    Some(parse_usage(api, usage))
}

/// Parses the token counts that an API has reported so far. Missing counts are 0.
fn parse_usage(api: Api, usage: &ParsedObject) -> Usage {
    let count = |name| parse_count(usage, name).unwrap_or_default();
    match api {
        Api::Anthropic => Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
        },
        Api::OpenAiChat => {
            let details = usage.get_object("prompt_tokens_details");
            let cached = details.and_then(|details| parse_count(&details, "cached_tokens"));
            let cached = cached.unwrap_or_default();
            Usage {
                input: count("prompt_tokens").saturating_sub(cached),
                output: count("completion_tokens"),
                cache_read: cached,
                cache_write: 0,
            }
        }
    }
}

fn parse_count(object: &ParsedObject, name: &str) -> Option<u64> {
    object.get(name)?.get().parse().ok()
}
