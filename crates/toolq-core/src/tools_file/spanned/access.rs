//! serde's access to the contents of a node. Invalid fields are reported here and skipped.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use crate::tools_file::spanned::field_error::FieldError;
use crate::tools_file::spanned::node_deserializer::NodeDeserializer;
use crate::tools_file::yaml::{YamlEntry, YamlNode};

/// Presents a field as five elements: the start and length of its key, the start and length of its value, and the
/// value, which is omitted if it is invalid.
pub(crate) struct FieldAccess<'de> {
    deserializer: NodeDeserializer<'de>,
    next_index: u8,
}

impl<'de> FieldAccess<'de> {
    pub(crate) fn new(deserializer: NodeDeserializer<'de>) -> Self {
        Self {
            deserializer,
            next_index: 0,
        }
    }
}

impl<'de> SeqAccess<'de> for FieldAccess<'de> {
    type Error = FieldError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, FieldError> {
        let deserializer = self.deserializer;
        let (key_span, value_span) = deserializer.spans();
        self.next_index += 1;
        let number = match self.next_index {
            1 => key_span.start,
            2 => key_span.len,
            3 => value_span.start,
            4 => value_span.len,
            _ => {
                let value = seed.deserialize(deserializer);
                return Ok(value.map_err(|error| deserializer.report(error)).ok());
            }
        };
        seed.deserialize(number.into_deserializer()).map(Some)
    }
}

/// The elements of a list.
pub(crate) struct ListAccess<'de> {
    deserializer: NodeDeserializer<'de>,
    items: std::slice::Iter<'de, YamlNode>,
}

impl<'de> ListAccess<'de> {
    pub(crate) fn new(deserializer: NodeDeserializer<'de>, items: &'de [YamlNode]) -> Self {
        Self {
            deserializer,
            items: items.iter(),
        }
    }
}

impl<'de> SeqAccess<'de> for ListAccess<'de> {
    type Error = FieldError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, FieldError> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        seed.deserialize(self.deserializer.for_element(item))
            .map(Some)
    }
}

/// The entries of a table.
pub(crate) struct TableAccess<'de> {
    deserializer: NodeDeserializer<'de>,
    remaining: std::vec::IntoIter<&'de YamlEntry>,
    current: Option<&'de YamlEntry>,
}

impl<'de> TableAccess<'de> {
    pub(crate) fn new(deserializer: NodeDeserializer<'de>, entries: Vec<&'de YamlEntry>) -> Self {
        Self {
            deserializer,
            remaining: entries.into_iter(),
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for TableAccess<'de> {
    type Error = FieldError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, FieldError> {
        self.current = self.remaining.next();
        let key = |entry: &'de YamlEntry| seed.deserialize(StrDeserializer::new(&entry.key));
        self.current.map(key).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, FieldError> {
        let entry = self
            .current
            .ok_or_else(|| FieldError::custom("value requested before its key"))?;
        seed.deserialize(self.deserializer.for_value(entry))
    }
}

/// An enum variant: the node is its value, and the text its name.
pub(crate) struct NodeVariantAccess<'de>(pub(crate) NodeDeserializer<'de>, pub(crate) &'de str);

impl<'de> EnumAccess<'de> for NodeVariantAccess<'de> {
    type Error = FieldError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), FieldError> {
        Ok((seed.deserialize(StrDeserializer::new(self.1))?, self))
    }
}

impl<'de> VariantAccess<'de> for NodeVariantAccess<'de> {
    type Error = FieldError;

    fn unit_variant(self) -> Result<(), FieldError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, FieldError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, FieldError> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.0.deserialize_struct("", fields, visitor)
    }
}
