//! Decodes Protocol Buffers without knowing their schema: a message is a list of numbered fields.

use data_encoding::HEXLOWER;

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message in their order.
#[derive(Debug, Clone, Default)]
pub struct Message(Vec<(u64, Field)>);

impl Message {
    /// Decodes a message. Panics if it isn't well-formed.
    pub fn decode(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = take_varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Varint(take_varint(&mut bytes)),
                1 => Field::Fixed64(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = usize::try_from(take_varint(&mut bytes)).unwrap();
                    Field::Bytes(take(&mut bytes, length).to_vec())
                }
                5 => {
                    let four: [u8; 4] = take(&mut bytes, 4).try_into().unwrap();
                    Field::Fixed64(u64::from(u32::from_le_bytes(four)))
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, field));
        }
        Self(fields)
    }

    /// Returns the messages in all fields with this number.
    pub fn messages(&self, number: u64) -> impl Iterator<Item = Self> {
        self.bytes(number).map(Self::decode)
    }

    /// Returns the message in a field, or an empty one.
    pub fn message(&self, number: u64) -> Self {
        self.messages(number).next().unwrap_or_default()
    }

    /// Returns the text in a field, or an empty one.
    pub fn text(&self, number: u64) -> String {
        let bytes = self.bytes(number).next().unwrap_or_default();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Returns the bytes of a field as hexadecimal digits.
    pub fn hex(&self, number: u64) -> String {
        let bytes = self.bytes(number).next().unwrap_or_default();
        HEXLOWER.encode(bytes)
    }

    /// Returns the number in a field.
    pub fn number(&self, number: u64) -> Option<u64> {
        self.0.iter().find_map(|(known, field)| match field {
            Field::Varint(value) | Field::Fixed64(value) if *known == number => Some(*value),
            _ => None,
        })
    }

    fn bytes(&self, number: u64) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(move |(known, field)| match field {
            Field::Bytes(bytes) if *known == number => Some(bytes.as_slice()),
            _ => None,
        })
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint has more than ten bytes");
}
