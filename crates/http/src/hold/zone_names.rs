//! The names of the zones that count requests, also where the file names none.

/// The zones that count the requests of a location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneNames {
    /// The server's zone.
    pub server: String,
    /// The location's zone; `None` at server level and with `status_zone off`.
    pub location: Option<String>,
}

/// The longest name of a zone in bytes; longer automatic names are cut.
pub const NAME_BYTES_MAX: usize = 128;

/// The zone of a server without `status_zone`: its first name, else its first listen address.
pub fn automatic(name: &str, first_listen: Option<String>) -> String {
    match (name, first_listen) {
        ("" | "_", Some(listen)) => listen,
        _ => cut(name.to_owned()),
    }
}

/// The zones of a location. `server_zone` and `location_zone` are its `status_zone`s, `automatic` is its server's zone
/// without one, and `label` is the location as written, if it is one.
pub fn of(server_zone: Option<&str>, location_zone: Option<&str>, automatic: &str, label: Option<String>) -> ZoneNames {
    let server = server_zone.unwrap_or(automatic).to_owned();
    let location = match (location_zone, label) {
        (Some("off"), _) => None,
        (Some(name), _) => Some(name.to_owned()),
        (None, Some(label)) if label.starts_with('/') => Some(cut(format!("{server}{label}"))),
        (None, Some(label)) => Some(cut(format!("{server} {label}"))),
        (None, None) => None,
    };
    ZoneNames { server, location }
}

fn cut(mut name: String) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(cut("é".repeat(100)).len(), NAME_BYTES_MAX);
        assert_eq!(cut(format!("a{}", "é".repeat(100))).len(), NAME_BYTES_MAX - 1);
    }
}
