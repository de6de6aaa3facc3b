//! The URL of a private server.

use std::fmt::Write as _;

/// A URL that sqlx, psql and everything built on libpq understand, and that needs no quotes in a
/// shell.
pub(super) fn of_socket(user: &str, directory: &str, port: u16, database: &str) -> String {
    let [user, directory, database] = [user, directory, database].map(percent_encoded);
    format!("postgres://{user}@{directory}:{port}/{database}")
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::postgres::PgConnectOptions;

    #[test]
    fn the_driver_reads_back_what_was_written() {
        for (directory, database) in [
            ("/tmp/pgflow-AbC12z", "postgres"),
            ("/srv/my data/50%/ü", "a/b c?d#e&f=g@h:1"),
        ] {
            let url = of_socket("postgres", directory, 5433, database);
            let options: PgConnectOptions = url.parse().unwrap();
            assert_eq!(options.get_socket().unwrap().to_str(), Some(directory));
            assert_eq!(options.get_database(), Some(database));
            assert_eq!(options.get_port(), 5433);
            assert_eq!(options.get_username(), "postgres");
        }
    }
}
