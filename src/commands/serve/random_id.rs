//! Ids that can't be guessed.

/// The random bytes of an id.
const ID_BYTES: usize = 16;

/// Returns an id that can't be guessed, or `None` if the system has no random numbers.
pub(crate) fn new_random_id() -> Option<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
