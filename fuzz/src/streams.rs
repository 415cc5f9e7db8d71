//! Streams as input: however their bytes arrive, they have the same events, and the same calls as the document that the
//! vendor would have sent instead.

use toolq_core::transcript::{StreamDecoder, collect_turns};
use toolq_core::types::{Call, Turn};

use crate::choices::{Choices, cut_at_random};
use crate::documents::read_recording;
use crate::vendor_message::{Vendor, VendorMessage};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;

/// Decodes a stream: the bytes themselves, or a message that the first byte selects.
pub fn streams(data: &[u8]) {
    let mut choices = Choices::new(data);
    let vendor = match choices.byte() {
        1 => Vendor::Anthropic,
        2 => Vendor::Chat,
        3 => Vendor::Responses,
        _ => return check_pieces(data),
    };
    check_message(&VendorMessage::from_choices(vendor, &mut choices));
}

/// Events are the same however the bytes arrive, and consistent with each other.
fn check_pieces(text: &[u8]) {
    let whole = decode([text]);
    assert_eq!(decode(text.chunks(1)), whole, "byte by byte");
    assert_eq!(decode(cut_at_random(text)), whole, "in pieces");
    let (turns, _) = collect_turns(decoder_of([text]));
    for (number, turn) in turns.iter().enumerate() {
        assert_eq!(turn.number, number);
        let expected = 0..turn.calls.len();
        assert!(
            turn.calls.iter().map(|call| call.position).eq(expected),
            "calls out of order"
        );
    }
}

/// A stream has the calls of the document.
fn check_message(message: &VendorMessage) {
    let (stream, document) = (message.stream(), message.document());
    let (streamed, aborted) = collect_turns(decoder_of([stream.as_bytes()]));
    // What isn't whole in the document either may be taken for what got lost.
    let is_certain = aborted.is_none() || !message.is_whole();
    assert!(is_certain, "{aborted:?}\n{stream}");
    let whole = decode([stream.as_bytes()]);
    assert_eq!(decode(cut_at_random(stream.as_bytes())), whole, "in pieces");
    let recording = read_recording(document.as_bytes(), None);
    let recording = recording.unwrap_or_else(|error| panic!("{error}\n{document}"));
    let read = |number| recording.turn(number, true).unwrap();
    let turns: Vec<Turn> = (0..recording.len()).map(read).collect();
    assert_eq!(
        summarize(&streamed),
        summarize(&turns),
        "{stream}\n{document}"
    );
}

fn summarize(turns: &[Turn]) -> Vec<String> {
    let turn = |turn: &Turn| {
        let calls: Vec<String> = turn.calls.iter().map(summarize_call).collect();
        // The form doesn't matter for a message without calls.
        let form = calls.first().map(|_| turn.answer_form);
        format!("{:?} {form:?} {calls:#?}", turn.ending)
    };
    turns.iter().map(turn).collect()
}

/// Everything about a call except why its input is invalid, which may name a place in the text around it.
pub(crate) fn summarize_call(call: &Call) -> String {
    let input = call.input.as_ref().map_or("invalid", |input| input.text());
    format!(
        "{} {} {:?} {:?} {input}",
        call.turn, call.position, call.id, call.name
    )
}

fn decoder_of<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> impl Iterator<Item = toolq_core::transcript::StreamEvent> {
    let mut decoder = StreamDecoder::new("stream", None, MAX_MESSAGE_BYTES);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        events.extend(decoder.by_ref());
    }
    decoder.finish();
    events.extend(decoder);
    events.into_iter()
}

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    decoder_of(pieces)
        .map(|event| format!("{event:?}"))
        .collect()
}
