//! Values that are written as one text or number, with a syntax of their own.

use std::fmt;

use serde::de::{Error, Visitor};

/// A value that is parsed from text or, for some types, from a number.
pub(crate) trait ParseScalar: Sized {
    /// What is expected, with an example.
    const EXPECTED: &'static str;

    /// Parses text. The error says what is wrong and, after `; `, what to do.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Converts a whole number. Returns `None` if the type doesn't accept one.
    fn from_number(_: u64) -> Option<Result<Self, String>> {
        None
    }

    /// Converts any other number. Returns `None` if the type doesn't accept one.
    fn from_fraction(_: f64) -> Option<Self> {
        None
    }
}

/// Reads such a value.
pub(crate) struct ScalarVisitor<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: ParseScalar> Visitor<'_> for ScalarVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let unexpected = serde::de::Unexpected::Unsigned(number);
        T::from_number(number)
            .ok_or_else(|| E::invalid_type(unexpected, &self))?
            .map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "only negative numbers get here, and they are rejected"
        )]
        let fraction = T::from_fraction(number as f64);
        fraction.ok_or_else(|| E::invalid_type(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        let fraction = T::from_fraction(number);
        fraction.ok_or_else(|| E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

/// Implements `Deserialize` and `JsonSchema` for a [`ParseScalar`] type.
macro_rules! impl_scalar {
    ($type:ty, $name:literal, $schema:tt) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                reader.deserialize_any(ScalarVisitor(std::marker::PhantomData))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

pub(crate) use impl_scalar;
