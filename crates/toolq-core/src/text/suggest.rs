//! "Did you mean" suggestions.

/// Minimum length of the start of a name from which the rest is guessed.
const MIN_PREFIX_LEN: usize = 4;

/// Returns the name in `known` that was probably meant by `found`. Names over 200 bytes match nothing.
///
/// At most a third of the letters may differ, apart from the order of words; or `found` is the start of the name, or the name behind
/// the one of a group, as in `functions.read`.
pub fn suggest_name<'k>(
    found: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    if found.len() > 200 {
        return None;
    }
    let lower = found.to_lowercase();
    let length = lower.chars().count();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let other_length = name.chars().count();
        let allowed = length.max(other_length) / 3;
        let is_prefix = lower.len() >= MIN_PREFIX_LEN && name.starts_with(&lower);
        if length.abs_diff(other_length) > allowed && !is_prefix {
            return None;
        }
        let distance = strsim::osa_distance(&lower, &name)
            .min(1 + strsim::osa_distance(&sort_words(&lower), &sort_words(&name)));
        (distance <= allowed || is_prefix).then_some(distance)
    };
    let near = known
        .clone()
        .into_iter()
        .filter_map(|name| Some((distance(name)?, name)));
    let nearest = near.min_by_key(|(distance, _)| *distance);
    let member = found
        .rsplit(['.', ':', '/'])
        .next()
        .filter(|member| *member != found);
    match (nearest, member) {
        (Some((_, name)), _) => Some(name),
        (None, Some(member)) => known.into_iter().find(|name| *name == member),
        (None, None) => None,
    }
}

fn sort_words(name: &str) -> String {
    let mut words: Vec<&str> = name.split(['_', '-']).collect();
    words.sort_unstable();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let keys = [
            "max_saved",
            "max_output",
            "timeout",
            "description",
            "env",
            "on_failure",
        ];
        let tools = ["read_file", "list_files", "search_text", "shell"];
        for (found, known, near) in [
            ("timout", &keys[..], Some("timeout")),
            ("Timeout", &keys, Some("timeout")),
            ("desc", &keys, Some("description")),
            ("on_fail", &keys, Some("on_failure")),
            ("evn", &keys, Some("env")),
            ("max_parallel", &keys, None),
            ("max", &keys, None),
            ("parallel", &keys, None),
            ("read_fil", &tools, Some("read_file")),
            ("file_read", &tools, Some("read_file")),
            ("text_search", &tools, Some("search_text")),
            ("write_file", &tools, None),
            ("bash", &tools, None),
            ("functions.shell", &tools, Some("shell")),
            ("default_api:shell", &tools, Some("shell")),
        ] {
            assert_eq!(suggest_name(found, known.iter().copied()), near, "{found}");
        }
        assert_eq!(suggest_name("parallel", ["all", "jobs"]), None);
        assert_eq!(suggest_name(&"x".repeat(201), keys), None);
    }
}
