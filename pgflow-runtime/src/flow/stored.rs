//! Types that are kept as JSON, and codecs: their functions without their bounds.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    EncodeError, Flow,
    decode::{Misfit, decode},
    encode::{AsJson, to_json},
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
    /// A value, to be written.
    fn as_json(&self) -> &dyn AsJson;
    /// Reads a value.
    fn decode(json: &RawValue) -> Result<Self, Misfit>;
    /// A list of values, to be written in one go.
    #[expect(
        clippy::ptr_arg,
        reason = "a slice has no size, which `dyn AsJson` asks for"
    )]
    fn list_as_json(list: &Vec<Self>) -> &dyn AsJson;
    /// Reads a list of values in one go.
    fn decode_list(json: &RawValue) -> Result<Vec<Self>, Misfit>;
    /// A value that may be missing, to be written.
    fn option_as_json(option: &Option<Self>) -> &dyn AsJson;
    /// Reads a value that may be missing.
    fn decode_option(json: &RawValue) -> Result<Option<Self>, Misfit>;
    /// A list of such values, to be written in one go.
    #[expect(
        clippy::ptr_arg,
        reason = "a slice has no size, which `dyn AsJson` asks for"
    )]
    fn options_as_json(list: &Vec<Option<Self>>) -> &dyn AsJson;
    /// Reads a list of such values in one go.
    fn decode_options(json: &RawValue) -> Result<Vec<Option<Self>>, Misfit>;
    /// The names of its fields in JSON, where they are known.
    fn fields() -> Option<&'static [&'static str]>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Stored for T {
    fn as_json(&self) -> &dyn AsJson {
        self
    }

    fn decode(json: &RawValue) -> Result<Self, Misfit> {
        decode(json)
    }

    fn list_as_json(list: &Vec<Self>) -> &dyn AsJson {
        list
    }

    fn decode_list(json: &RawValue) -> Result<Vec<Self>, Misfit> {
        decode(json)
    }

    fn option_as_json(option: &Option<Self>) -> &dyn AsJson {
        option
    }

    fn decode_option(json: &RawValue) -> Result<Option<Self>, Misfit> {
        decode(json)
    }

    fn options_as_json(list: &Vec<Option<Self>>) -> &dyn AsJson {
        list
    }

    fn decode_options(json: &RawValue) -> Result<Vec<Option<Self>>, Misfit> {
        decode(json)
    }

    fn fields() -> Option<&'static [&'static str]> {
        fields::of::<T>()
    }
}

/// Writes a value for Postgres.
pub(crate) fn encode<T: Stored>(value: &T) -> Result<Box<RawValue>, EncodeError> {
    to_json(value.as_json())
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
    pub(super) as_json: fn(&T) -> &dyn AsJson,
    pub(super) decode: fn(&RawValue) -> Result<T, Misfit>,
    /// `false` where null stands for an element that failed.
    pub(super) may_be_null: bool,
}

/// The codec of a type.
pub const fn codec<T: Stored>() -> Codec<T> {
    Codec {
        as_json: T::as_json,
        decode: T::decode,
        may_be_null: true,
    }
}

/// The codec of a list, for which the element's bound is enough.
pub const fn vec_codec<T: Stored>() -> Codec<Vec<T>> {
    Codec {
        as_json: T::list_as_json,
        decode: T::decode_list,
        may_be_null: true,
    }
}

/// The codecs of an element and of a list of them.
pub type ListCodecs<T> = (Codec<T>, Codec<Vec<T>>);

/// Both, from one mention of the bound.
pub const fn list_codecs<T: Stored>() -> ListCodecs<T> {
    (codec(), vec_codec())
}

/// The codecs of an element that may have failed, of a list of them, and of one that did not fail,
/// which is never null.
pub type TolerantCodecs<T> = (Codec<Option<T>>, Codec<Vec<Option<T>>>, Codec<T>);

/// All of them, from one mention of the bound.
pub const fn tolerant_codecs<T: Stored>() -> TolerantCodecs<T> {
    let option = Codec {
        as_json: T::option_as_json,
        decode: T::decode_option,
        may_be_null: true,
    };
    let list = Codec {
        as_json: T::options_as_json,
        decode: T::decode_options,
        may_be_null: true,
    };
    let some = Codec {
        as_json: T::as_json,
        decode: T::decode,
        may_be_null: false,
    };
    (option, list, some)
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
