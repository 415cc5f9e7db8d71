//! Whose API an agent's model has, by the names that the GenAI conventions of OpenTelemetry have for providers.

use toolq_core::types::Api;

/// The hosts of providers. A prefix, such as a region or a tenant, doesn't matter.
const HOSTS: [(&str, &str); 14] = [
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
];

/// Returns the name of the provider at `host`. At an unknown host, the API decides, unless many others implement it, too.
pub(super) fn provider_name(host: &str, api: Api) -> Option<&'static str> {
    let is_at = |known: &str| {
        let before = host.strip_suffix(known);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['.', '-']))
    };
    let is_bedrock = host.starts_with("bedrock") && host.ends_with(".amazonaws.com");
    let known = HOSTS.iter().find(|(known, _)| is_at(known));
    match (known, api) {
        (Some((_, name)), _) => Some(name),
        (None, _) if is_bedrock => Some("aws.bedrock"),
        (None, Api::Anthropic) => Some("anthropic"),
        (None, Api::OpenAiChat) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_tells_its_provider() {
        for (host, api, name) in [
            ("api.anthropic.com", Api::Anthropic, Some("anthropic")),
            ("127.0.0.1", Api::Anthropic, Some("anthropic")),
            ("api.deepseek.com", Api::Anthropic, Some("deepseek")),
            ("api.openai.com", Api::OpenAiChat, Some("openai")),
            (
                "me.openai.azure.com",
                Api::OpenAiChat,
                Some("azure.ai.openai"),
            ),
            (
                "us-central1-aiplatform.googleapis.com",
                Api::OpenAiChat,
                Some("gcp.vertex_ai"),
            ),
            (
                "bedrock-runtime.us-west-2.amazonaws.com",
                Api::OpenAiChat,
                Some("aws.bedrock"),
            ),
            ("localhost", Api::OpenAiChat, None),
            ("notapi.openai.com.example", Api::OpenAiChat, None),
            ("fakeapi.openai.com", Api::OpenAiChat, None),
        ] {
            assert_eq!(provider_name(host, api), name, "{host}");
        }
    }
}
