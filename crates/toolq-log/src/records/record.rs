use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::FORMAT;
use crate::read::{Damage, Flaw};
use crate::records::blob::Body;
use crate::records::kind::Kind;
use crate::records::line;
use crate::records::line::Chain;

/// One record, as it was written: in a line of somebody's, or by itself.
#[derive(Debug, Clone)]
pub struct Record<'l> {
    /// The number of its line, counted from 1.
    pub line: u64,
    /// Where its line begins, in bytes.
    pub offset: u64,
    /// Where its line ends, its break included, in bytes.
    pub end: u64,
    /// Its number in the file, counted from 0.
    pub seq: u64,
    /// Its own id.
    pub id: Uuid,
    /// The id of the record that it belongs to.
    pub parent: Option<Uuid>,
    /// When it was written: milliseconds since 1970. Clocks may go backwards; `seq` does not.
    pub timestamp: u64,
    /// What it says.
    pub kind: Kind,
    /// `null` where its type has none.
    pub content: Body<'l>,
    /// JSON whose form depends on the type.
    pub metadata: Cow<'l, RawValue>,
}

impl<'l> Record<'l> {
    pub(crate) fn of(read: &line::Read<'l>, line: u64, place: Range<u64>) -> Result<Self, Flaw> {
        Ok(Self {
            line,
            offset: place.start,
            end: place.end,
            seq: read.seq,
            id: read.id,
            parent: read.parent_id,
            timestamp: read.timestamp,
            kind: Kind::of(&read.kind),
            content: Body::of(read.content)?,
            metadata: Cow::Borrowed(read.metadata),
        })
    }

    /// The same without the line that it stands in.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        Record {
            content: self.content.into_owned(),
            metadata: Cow::Owned(self.metadata.into_owned()),
            ..self
        }
    }

    /// The metadata as that of its type, one of [`super::metadata`].
    ///
    /// # Errors
    /// It has another form: who wrote it was no toolq, since its seal holds.
    pub fn metadata<'a, M: Deserialize<'a>>(&'a self) -> Result<M, Damage> {
        serde_json::from_str(self.metadata.get()).map_err(|error| Damage {
            line: self.line,
            offset: self.offset,
            what: Flaw::Metadata(error.to_string()),
        })
    }
}

/// The record of a line, if it is whole and continues `chain`, with what [`understood`] says of it.
pub(crate) fn verified<'l>(
    bytes: &'l [u8],
    line: u64,
    place: Range<u64>,
    chain: &Chain,
) -> Result<(Record<'l>, Option<(u32, u32)>), Flaw> {
    let read = line::read(bytes)?;
    chain.check(read.seq, &read.prev)?;
    let record = Record::of(&read, line, place)?;
    let newer = understood(&record)?;
    Ok((record, newer))
}

#[derive(Deserialize)]
struct SessionFormat {
    format: Version,
}

#[derive(Deserialize)]
struct Version {
    major: u32,
    minor: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Demand {
    must_understand: bool,
}

/// Refuses what must be understood and isn't. Returns the format of a session where it is a newer minor one.
fn understood(record: &Record) -> Result<Option<(u32, u32)>, Flaw> {
    let metadata = record.metadata.get();
    match &record.kind {
        Kind::Session => {
            let session = serde_json::from_str(metadata);
            let SessionFormat {
                format: Version { major, minor },
            } = session.map_err(|error| Flaw::Metadata(error.to_string()))?;
            if major != FORMAT.0 {
                return Err(Flaw::Newer { major, minor });
            }
            Ok((minor > FORMAT.1).then_some((major, minor)))
        }
        Kind::Other(name) => {
            let demand: Demand = serde_json::from_str(metadata).unwrap_or_default();
            if demand.must_understand {
                return Err(Flaw::MustUnderstand(name.to_string()));
            }
            Ok(None)
        }
        _ if record.seq == 0 => Err(Flaw::NotALog),
        _ => Ok(None),
    }
}
