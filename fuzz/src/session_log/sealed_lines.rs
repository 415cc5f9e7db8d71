//! Lines with valid seals, so that the fuzzer gets past the checksums.

/// Replaces the number and the checksum of each line. Lines without the form of a record stay as they are.
pub(crate) fn seal(text: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(text.len() + 128);
    let mut seq = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some(body) = body_of(line) else {
            sealed.extend_from_slice(line);
            continue;
        };
        let begin = sealed.len();
        sealed.extend_from_slice(format!("{{\"seq\":{seq}").as_bytes());
        sealed.extend_from_slice(body);
        let crc = crc32fast::hash(&sealed[begin..]);
        sealed.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}").as_bytes());
        sealed.push(b'\n');
        seq += 1;
    }
    sealed
}

/// Returns what is between the number and the seal of a whole line.
fn body_of(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n")?;
    let start = line.iter().position(|byte| *byte == b',')?;
    let mark = b",\"crc\":";
    let end = line.windows(mark.len()).rposition(|window| window == mark);
    line.get(start..end.unwrap_or(line.len()).max(start))
}
