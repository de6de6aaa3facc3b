//! Types that are kept as JSON, and codecs: their functions without their bounds.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    EncodeError, Flow,
    decode::{Misfit, decode},
    encode::to_json,
    fields,
};

/// The requirement for a flow's input and a step's output.
// The bounds of serde stand on the blanket implementation and not here: as supertraits of a type
// that is named in a trait they would be reported one by one, in the words of serde.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be stored as JSON",
    label = "needs `Serialize`, `Deserialize`, `Send`, `Sync` and no borrowed data",
    note = "step outputs and flow inputs are stored in Postgres and read back by the steps that depend on them",
    note = "to a type of your own, and to the types it is made of, add `#[derive(serde::Serialize, serde::Deserialize)]`; of a type of another crate, turn on the feature `serde`, or store something that can be made from it",
    note = "where it has these and is not `Send` and `Sync`, use `Arc` instead of `Rc`, and `Mutex` or an atomic type instead of `RefCell` and `Cell`"
)]
pub trait Stored: Sized + Send + Sync + 'static {
    /// Writes a value.
    fn encode(&self) -> Result<Box<RawValue>, EncodeError>;
    /// Reads a value.
    fn decode(json: &RawValue) -> Result<Self, Misfit>;
    /// Writes a list of values in one go.
    fn encode_list(list: &[Self]) -> Result<Box<RawValue>, EncodeError>;
    /// Reads a list of values in one go.
    fn decode_list(json: &RawValue) -> Result<Vec<Self>, Misfit>;
    /// The names of its fields in JSON, where they are known.
    fn fields() -> Option<&'static [&'static str]>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Stored for T {
    fn encode(&self) -> Result<Box<RawValue>, EncodeError> {
        to_json(self)
    }

    fn decode(json: &RawValue) -> Result<Self, Misfit> {
        decode(json)
    }

    fn encode_list(list: &[Self]) -> Result<Box<RawValue>, EncodeError> {
        to_json(list)
    }

    fn decode_list(json: &RawValue) -> Result<Vec<Self>, Misfit> {
        decode(json)
    }

    fn fields() -> Option<&'static [&'static str]> {
        fields::of::<T>()
    }
}

/// Writes a value for Postgres.
pub(crate) fn encode<T: Stored>(value: &T) -> Result<Box<RawValue>, EncodeError> {
    value.encode()
}

/// The names of the fields of a flow's input in JSON, where they are known.
pub(crate) fn input_fields<F: Flow>() -> Option<&'static [&'static str]> {
    F::Input::fields()
}

/// The way in which a type is written and read.
///
/// Generated code names the bound `Stored` once per type, where it makes the codec; all else goes
/// through the codec. A missing derive is then one error, however many steps use the type.
#[derive(Debug)]
pub struct Codec<T> {
    pub(super) encode: fn(&T) -> Result<Box<RawValue>, EncodeError>,
    pub(super) decode: fn(&RawValue) -> Result<T, Misfit>,
}

/// The codec of a type.
pub const fn codec<T: Stored>() -> Codec<T> {
    Codec {
        encode: T::encode,
        decode: T::decode,
    }
}

/// The codec of a list, for which the element's bound is enough.
pub const fn vec_codec<T: Stored>() -> Codec<Vec<T>> {
    Codec {
        encode: |list| T::encode_list(list),
        decode: T::decode_list,
    }
}

/// The codecs of an element and of a list of them.
pub type ListCodecs<T> = (Codec<T>, Codec<Vec<T>>);

/// Both, from one mention of the bound.
pub const fn list_codecs<T: Stored>() -> ListCodecs<T> {
    (codec(), vec_codec())
}

/// The codec of a flow's input; the bound is the one on [`Flow::Input`].
pub const fn input_codec<F: Flow>() -> Codec<F::Input> {
    codec()
}

/// The result of a function: generated code names an output as what a function returns.
pub type Value<F> = <F as Returns>::Value;

/// A function as its result.
pub trait Returns {
    /// The result.
    type Value;
}

impl<T> Returns for fn() -> T {
    type Value = T;
}
