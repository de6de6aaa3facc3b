//! The names under which serde reads the fields of a type, found without a value.

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// The names of a struct's fields, with all aliases, as serde renames them.
///
/// Only types that ask for a struct of named fields say them: maps, enums, structs with a flattened
/// field and many types that are read manually don't, and there is nothing to say of them.
pub(crate) fn of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut fields = None;
    // It gets nothing to read, and so always fails.
    let _ = T::deserialize(Probe(&mut fields));
    fields
}

struct Probe<'f>(&'f mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Some(fields);
        Err(Error::custom("only the fields were asked for"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only the fields were asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code, reason = "only read by serde")]
    struct Order {
        sold_at: u64,
        #[serde(rename = "tier", alias = "level")]
        plan: String,
        #[serde(default)]
        note: Option<String>,
        #[serde(skip)]
        cache: u8,
    }

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only read by serde")]
    struct Flattened {
        id: u64,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }

    #[derive(Deserialize)]
    #[serde(transparent)]
    #[allow(dead_code, reason = "only read by serde")]
    struct Transparent {
        order: Order,
    }

    #[derive(Deserialize)]
    #[serde(from = "Order")]
    struct Converted;

    impl From<Order> for Converted {
        fn from(_: Order) -> Self {
            Self
        }
    }

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only read by serde")]
    struct Newtype(Order);

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only read by serde")]
    enum External {
        Order { plan: String },
    }

    #[derive(Deserialize)]
    #[serde(tag = "kind")]
    #[allow(dead_code, reason = "only read by serde")]
    enum Internal {
        Order { plan: String },
    }

    #[derive(Deserialize)]
    #[serde(tag = "kind", content = "value")]
    #[allow(dead_code, reason = "only read by serde")]
    enum Adjacent {
        Order { plan: String },
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "only read by serde")]
    enum Untagged {
        Order { plan: String },
    }

    #[derive(Deserialize)]
    struct Unit;

    const ORDER: [&str; 4] = ["level", "note", "soldAt", "tier"];

    fn sorted<T: DeserializeOwned>() -> Option<Vec<&'static str>> {
        let mut fields = of::<T>()?.to_vec();
        fields.sort_unstable();
        Some(fields)
    }

    #[test]
    fn a_struct_tells_its_fields_as_they_stand_in_json() {
        assert_eq!(sorted::<Order>(), Some(ORDER.to_vec()));
        assert_eq!(sorted::<Box<Order>>(), Some(ORDER.to_vec()));
        assert_eq!(sorted::<Transparent>(), Some(ORDER.to_vec()));
        assert_eq!(sorted::<Converted>(), Some(ORDER.to_vec()));
        assert_eq!(sorted::<Adjacent>(), Some(vec!["kind", "value"]));
    }

    #[test]
    fn other_types_tell_nothing() {
        assert_eq!(of::<Flattened>(), None);
        assert_eq!(of::<Newtype>(), None);
        assert_eq!(of::<External>(), None);
        assert_eq!(of::<Internal>(), None);
        assert_eq!(of::<Untagged>(), None);
        assert_eq!(of::<Unit>(), None);
        assert_eq!(of::<Option<Order>>(), None);
        assert_eq!(of::<Vec<Order>>(), None);
        assert_eq!(of::<BTreeMap<String, u8>>(), None);
        assert_eq!(of::<serde_json::Value>(), None);
        assert_eq!(of::<String>(), None);
        assert_eq!(of::<()>(), None);
    }
}
