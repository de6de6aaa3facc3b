//! Looks at a value while it is written as JSON: what JSON would change silently is refused.

use std::cell::Cell;

use serde::{
    Serialize, Serializer,
    ser::{
        Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::value::RawValue;

/// A value that JSON has no form for, though `serde_json` writes one: `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// NaN or infinite.
    NotFinite,
    /// `Some` of what is `null` itself, which reads back as `None`.
    SomeOfNothing,
    /// Nested further than it can be written without running out of stack.
    TooDeep,
}

/// The most values that may be inside one another, wrappers such as `Some` included. JSON itself
/// may be 126 levels deep, see `encode`.
const DEEPEST: usize = 500;

/// The reason why a value was refused, and how deep the serializer is in it.
#[derive(Debug, Default)]
pub(super) struct Found {
    change: Cell<Option<Change>>,
    depth: Cell<usize>,
}

impl Found {
    pub(super) fn change(&self) -> Option<Change> {
        self.change.get()
    }
}

/// A value to be written. `found` keeps why it was refused, which the error of the serializer can't
/// carry.
pub(super) struct Watched<'w, T: ?Sized> {
    pub(super) value: &'w T,
    pub(super) found: &'w Found,
    pub(super) is_in_some: bool,
}

impl<T: Serialize + ?Sized> Serialize for Watched<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let depth = self.found.depth.get();
        if depth == DEEPEST {
            return Err(refuse(self.found, Change::TooDeep));
        }
        self.found.depth.set(depth + 1);
        let written = self.value.serialize(Watch {
            inner: serializer,
            found: self.found,
            is_in_some: self.is_in_some,
        });
        self.found.depth.set(depth);
        written
    }
}

/// The serializer that writes a whole value.
pub(super) type JsonWriter<'w> = Watch<'w, &'w mut serde_json::Serializer<&'w mut Vec<u8>>>;

/// Writes with `inner`, whose compound values it wraps as well.
#[derive(Debug)]
pub struct Watch<'w, S> {
    inner: S,
    found: &'w Found,
    is_in_some: bool,
}

impl<'w, S> Watch<'w, S> {
    /// For the whole value.
    pub(super) fn outermost(inner: S, found: &'w Found) -> Self {
        found.depth.set(1);
        Self::again(inner, found)
    }

    fn again<C>(inner: C, found: &'w Found) -> Watch<'w, C> {
        Watch {
            inner,
            found,
            is_in_some: false,
        }
    }
}

fn refuse<E: Error>(found: &Found, change: Change) -> E {
    found.change.set(Some(change));
    E::custom("a value that JSON has no form for")
}

/// Whole numbers that are written with an exponent lose it in `jsonb`, and would be read as
/// integers where the type says nothing.
fn is_taken_for_an_integer(float: f64) -> bool {
    const BEFORE_EXPONENTS: f64 = 1e16;
    const LARGEST_INTEGER: f64 = 18_446_744_073_709_551_616.0;
    (BEFORE_EXPONENTS..=LARGEST_INTEGER).contains(&float.abs())
}

fn with_fraction<S: Serializer>(float: String, serializer: S) -> Result<S::Ok, S::Error> {
    match RawValue::from_string(float) {
        Ok(number) => number.serialize(serializer),
        Err(error) => Err(S::Error::custom(error)),
    }
}

macro_rules! as_it_is {
    ($($method:ident: $type:ty,)+) => {
        $(fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        })+
    };
}

macro_rules! compound {
    ($($method:ident($($argument:ident: $type:ty),*) -> $compound:ident,)+) => {
        $(fn $method(self, $($argument: $type),*) -> Result<Self::$compound, S::Error> {
            Ok(Self::again(self.inner.$method($($argument),*)?, self.found))
        })+
    };
}

impl<'w, S: Serializer> Serializer for Watch<'w, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Watch<'w, S::SerializeSeq>;
    type SerializeTuple = Watch<'w, S::SerializeTuple>;
    type SerializeTupleStruct = Watch<'w, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Watch<'w, S::SerializeTupleVariant>;
    type SerializeMap = Watch<'w, S::SerializeMap>;
    type SerializeStruct = Watch<'w, S::SerializeStruct>;
    type SerializeStructVariant = Watch<'w, S::SerializeStructVariant>;

    as_it_is! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        if !value.is_finite() {
            Err(refuse(self.found, Change::NotFinite))
        } else if is_taken_for_an_integer(value.into()) {
            with_fraction(format!("{value:.1}"), self.inner)
        } else {
            self.inner.serialize_f32(value)
        }
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        if !value.is_finite() {
            Err(refuse(self.found, Change::NotFinite))
        } else if is_taken_for_an_integer(value) {
            with_fraction(format!("{value:.1}"), self.inner)
        } else {
            self.inner.serialize_f64(value)
        }
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        if self.is_in_some {
            return Err(refuse(self.found, Change::SomeOfNothing));
        }
        self.inner.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        if self.is_in_some {
            return Err(refuse(self.found, Change::SomeOfNothing));
        }
        self.inner.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        if self.is_in_some {
            return Err(refuse(self.found, Change::SomeOfNothing));
        }
        self.inner.serialize_unit_struct(name)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&Watched {
            value,
            found: self.found,
            is_in_some: true,
        })
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        // Written as what it wraps.
        self.inner.serialize_newtype_struct(
            name,
            &Watched {
                value,
                found: self.found,
                is_in_some: self.is_in_some,
            },
        )
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_variant(
            name,
            index,
            variant,
            &Watched {
                value,
                found: self.found,
                is_in_some: false,
            },
        )
    }

    compound! {
        serialize_seq(len: Option<usize>) -> SerializeSeq,
        serialize_tuple(len: usize) -> SerializeTuple,
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct,
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, len: usize) -> SerializeTupleVariant,
        serialize_map(len: Option<usize>) -> SerializeMap,
        serialize_struct(name: &'static str, len: usize) -> SerializeStruct,
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, len: usize) -> SerializeStructVariant,
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! parts {
    ($($trait:ident: $method:ident($($key:ident)?),)+) => {
        $(impl<S: $trait> $trait for Watch<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), S::Error> {
                let found = self.found;
                self.inner.$method($($key,)? &Watched { value, found, is_in_some: false })
            }

            parts!(@skip $($key)?);

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        })+
    };
    (@skip) => {};
    (@skip $key:ident) => {
        fn skip_field(&mut self, $key: &'static str) -> Result<(), S::Error> {
            self.inner.skip_field($key)
        }
    };
}

parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(key),
    SerializeStructVariant: serialize_field(key),
}

impl<S: SerializeMap> SerializeMap for Watch<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        // A key is a text: what can't be one is refused by `serde_json`.
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        let found = self.found;
        self.inner.serialize_value(&Watched {
            value,
            found,
            is_in_some: false,
        })
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}
