//! The outputs of a completed run.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
};

use serde_json::value::RawValue;

use super::{
    DecodeError,
    decode::{Misfit, decode_object},
    stored::Codec,
};

/// The outputs of a run's leaf steps, by slug; a skipped step has none.
#[derive(Debug)]
pub struct Outputs<'a>(BTreeMap<&'a str, &'a RawValue>);

impl<'a> Outputs<'a> {
    /// Takes the column `output` of a run: an object, or null for no outputs.
    pub fn new(json: &'a RawValue) -> Result<Self, DecodeError> {
        if json.get() == "null" {
            return Ok(Self(BTreeMap::new()));
        }
        let outputs =
            decode_object(json).map_err(|misfit| DecodeError::new("output of the run", misfit))?;
        Ok(Self(outputs))
    }

    /// The output of a leaf step that can't be skipped.
    #[doc(hidden)]
    pub fn required<T>(&self, slug: &str, codec: &Codec<T>) -> Result<T, DecodeError> {
        match self.0.get(slug) {
            Some(json) => read(slug, json, codec),
            None => Err(error(slug, Misfit::absent())),
        }
    }

    /// The output of a leaf step, if it was not skipped.
    #[doc(hidden)]
    pub fn optional<T>(&self, slug: &str, codec: &Codec<T>) -> Result<Option<T>, DecodeError> {
        match self.0.get(slug) {
            Some(json) => match read(slug, json, codec) {
                Ok(output) => Ok(Some(output)),
                Err(error) => Err(error),
            },
            None => Ok(None),
        }
    }
}

// The compiler builds this once for each type, hence no closures.
fn read<T>(slug: &str, json: &RawValue, codec: &Codec<T>) -> Result<T, DecodeError> {
    match (codec.decode)(json) {
        Ok(output) => Ok(output),
        Err(misfit) => Err(error(slug, misfit)),
    }
}

fn error(slug: &str, misfit: Misfit) -> DecodeError {
    DecodeError::new(format!("output of step `{slug}`"), misfit)
}

/// A field of an output as `Debug` of the whole shows it: by its value, if its type can.
#[derive(Debug)]
pub struct Shown<'a, T>(pub &'a T);

impl<T: Debug> Shown<'_, T> {
    /// The value.
    pub fn shown(&self) -> &dyn Debug {
        self.0
    }
}

/// The fallback for types that do not implement `Debug`.
pub trait Hidden {
    /// No more than that there is something.
    fn shown(&self) -> &dyn Debug;
}

impl<T> Hidden for Shown<'_, T> {
    fn shown(&self) -> &dyn Debug {
        &Unseen
    }
}

struct Unseen;

impl Debug for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::stored::codec;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn outputs_are_read_by_slug() {
        let outputs = Outputs::new(raw(r#"{"report":1,"notify":null}"#)).expect("an object");
        assert_eq!(outputs.required("report", &codec::<u8>()), Ok(1));
        assert_eq!(outputs.optional("notify", &codec::<()>()), Ok(Some(())));
        assert_eq!(outputs.optional("licences", &codec::<u8>()), Ok(None));
        let error = outputs
            .required("licences", &codec::<u8>())
            .expect_err("absent");
        assert_eq!(
            error.to_string(),
            "output of step `licences`: it is missing"
        );
    }

    #[test]
    fn null_is_no_outputs() {
        let outputs = Outputs::new(raw("null")).expect("null");
        assert_eq!(outputs.optional("report", &codec::<u8>()), Ok(None));
        let error = Outputs::new(raw("[\"hunter2\"]")).expect_err("not an object");
        assert_eq!(
            error.to_string(),
            "output of the run: invalid type (an array), expected a map (line 1, column 0)"
        );
    }
}
