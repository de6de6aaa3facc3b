//! The check whether JSON contains JSON, as conditions ask for it with `@>`.

use serde_json::Value;

/// Returns whether all that the pattern says is found in the value. The pattern is an object, as
/// that of a condition is.
pub(crate) fn contains(value: &Value, pattern: &Value) -> bool {
    match (value, pattern) {
        (Value::Object(value), Value::Object(pattern)) => pattern
            .iter()
            .all(|(key, wanted)| value.get(key).is_some_and(|found| contains(found, wanted))),
        (Value::Array(value), Value::Array(pattern)) => pattern
            .iter()
            .all(|wanted| value.iter().any(|found| contains(found, wanted))),
        _ => value == pattern,
    }
}

mod tests {
    use serde_json::{Value, json};

    use super::contains;
    use crate::support::TestDb;

    /// The values that random flows handle, in each of the places where they may stand.
    fn samples() -> Vec<Value> {
        let scalars = crate::model::generator::SCALARS.map(|text| {
            let value: Value = serde_json::from_str(text).expect("a sample is JSON");
            value
        });
        let mut samples = scalars.to_vec();
        for one in &scalars {
            samples.push(json!({"a": one}));
            for other in &scalars {
                samples.push(json!([one, other]));
                samples.push(json!({"a": one, "b": other}));
                samples.push(json!({"a": [one, other]}));
            }
        }
        samples
    }

    #[tokio::test]
    async fn it_is_what_postgres_means_by_it() {
        let db = TestDb::new().await;
        let samples = samples();
        let texts: Vec<String> = samples.iter().map(ToString::to_string).collect();
        let agreed: Vec<(i64, i64, bool)> = sqlx::query_as(
            "select v.n, p.n, v.text::jsonb @> p.text::jsonb
             from unnest($1::text[]) with ordinality v (text, n), unnest($1::text[]) with ordinality p (text, n)
             where p.text::jsonb <> 'null' and jsonb_typeof(p.text::jsonb) = 'object'",
        )
        .bind(&texts)
        .fetch_all(&db.pool)
        .await
        .expect("the samples can be compared");
        assert!(agreed.iter().any(|&(.., holds)| holds));
        for (value, pattern, holds) in agreed {
            let place = |n: i64| usize::try_from(n - 1).expect("a place");
            let (value, pattern) = (&samples[place(value)], &samples[place(pattern)]);
            assert_eq!(contains(value, pattern), holds, "{value} @> {pattern}");
        }
    }
}
