//! "Did you mean" suggestions.

/// Returns the name in `known` that was probably meant by `found`. Names over 200 bytes match nothing.
pub fn suggest_name<'k>(found: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if found.len() > 200 {
        return None;
    }
    let lower = found.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, name)| name)
}
