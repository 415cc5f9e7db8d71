//! serde's view of what is in a node. Here a wrong setting is reported and passed over.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use crate::tools_file::spanned::fault::Fault;
use crate::tools_file::spanned::reader::Reader;
use crate::tools_file::yaml::{Entry, Node};

/// A setting: the start and length of its key and of itself, then its value.
pub(crate) struct Parts<'de> {
    reader: Reader<'de>,
    next: u8,
}

impl<'de> Parts<'de> {
    pub(crate) fn new(reader: Reader<'de>) -> Self {
        Self { reader, next: 0 }
    }
}

impl<'de> SeqAccess<'de> for Parts<'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let reader = self.reader;
        let (key, own) = reader.places();
        self.next += 1;
        let number = match self.next {
            1 => key.start,
            2 => key.len,
            3 => own.start,
            4 => own.len,
            _ => {
                let value = seed.deserialize(reader);
                return Ok(value.map_err(|fault| reader.report(fault)).ok());
            }
        };
        seed.deserialize(number.into_deserializer()).map(Some)
    }
}

/// The elements of a list.
pub(crate) struct Items<'de> {
    reader: Reader<'de>,
    items: std::slice::Iter<'de, Node>,
}

impl<'de> Items<'de> {
    pub(crate) fn new(reader: Reader<'de>, items: &'de [Node]) -> Self {
        Self {
            reader,
            items: items.iter(),
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        seed.deserialize(self.reader.element(item)).map(Some)
    }
}

/// The entries of a table.
pub(crate) struct Entries<'de> {
    reader: Reader<'de>,
    rest: std::vec::IntoIter<&'de Entry>,
    value: Option<&'de Entry>,
}

impl<'de> Entries<'de> {
    pub(crate) fn new(reader: Reader<'de>, entries: Vec<&'de Entry>) -> Self {
        Self {
            reader,
            rest: entries.into_iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        self.value = self.rest.next();
        let key = |entry: &'de Entry| seed.deserialize(StrDeserializer::new(&entry.key));
        self.value.map(key).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let entry = self.value.ok_or_else(|| Fault::custom("no value"))?;
        seed.deserialize(self.reader.value(entry))
    }
}

/// An enum's variant: its name, and the node again as its value.
pub(crate) struct Variant<'de>(pub(crate) Reader<'de>, pub(crate) &'de str);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        Ok((seed.deserialize(StrDeserializer::new(self.1))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.0.deserialize_struct("", fields, visitor)
    }
}
