//! A sentence in English and in Korean for each variable, and for each directive that weir lacks.
//!
//! The tables of variables (`Variable`, and `read::nginx_only` of `http`) have names alone: a server needs no sentences.
//! `variables.txt` and `nginx_only.txt` have the sentences, by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::blocks;

/// The variables of weir, and those of nginx and NGINX Plus that weir lacks. A name that ends in `_` is a prefix.
const VARIABLES: &str = include_str!("variables.txt");

/// The directives of nginx, NGINX Plus and separate modules that weir lacks, and `include`, which is in no table.
const NGINX_ONLY: &str = include_str!("nginx_only.txt");

type ByName = HashMap<&'static str, (&'static str, &'static str)>;

static OF_VARIABLES: LazyLock<ByName> = LazyLock::new(|| by_name(VARIABLES));
static OF_DIRECTIVES: LazyLock<ByName> = LazyLock::new(|| by_name(NGINX_ONLY));

fn by_name(file: &'static str) -> ByName {
    blocks::read(file).flat_map(|block| block.names.split(' ').map(move |name| (name, (block.en, block.ko)))).collect()
}

/// The meaning of a built-in variable in English and in Korean; `name` has no `$`, and its case does not matter. A name
/// with a known prefix, such as `http_x_request_id`, has the meaning of the longest one. `None` for a variable that
/// neither nginx nor weir has: a configuration may define it.
pub fn variable(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.to_ascii_lowercase();
    let exact = OF_VARIABLES.get(name.as_str());
    let ends = name.char_indices().filter(|(_, c)| *c == '_').map(|(at, _)| at + 1);
    exact.or_else(|| ends.rev().find_map(|end| OF_VARIABLES.get(name.get(..end)?))).copied()
}

/// The meaning of a directive that weir lacks, in English and in Korean. `None` if weir has the directive (then its
/// table has the sentence), or nobody has it.
pub fn nginx_only(name: &str) -> Option<(&'static str, &'static str)> {
    OF_DIRECTIVES.get(name).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;
    use weir_edge::family::ALL;
    use weir_http::read::nginx_only as table;

    /// The variables of the file that weir has not.
    #[rustfmt::skip]
    const ABSENT: &[&str] = &[
        // The groups of regular expressions.
        "1", "2", "3", "4", "5", "6", "7", "8", "9",
        // ngx_http_geoip_module.
        "geoip_area_code", "geoip_city", "geoip_city_continent_code", "geoip_city_country_code",
        "geoip_city_country_code3", "geoip_city_country_name", "geoip_country_code", "geoip_country_code3",
        "geoip_country_name", "geoip_dma_code", "geoip_latitude", "geoip_longitude", "geoip_org", "geoip_postal_code",
        "geoip_region", "geoip_region_name",
        // Fields with a sentence of their own: weir's tables have their prefix.
        "http_host", "http_referer", "http_user_agent", "http_via", "http_x_forwarded_for", "sent_http_cache_control",
        "sent_http_link",
        // A configuration sets it.
        "memcached_key",
        // NGINX Plus.
        "jwt_claim_", "jwt_header_", "jwt_payload", "mqtt_preread_clientid", "mqtt_preread_username",
        "oidc_access_token", "oidc_claim_", "oidc_id_token", "oidc_userinfo", "session_log_binary_id",
        "session_log_id", "time_iso8601_ms", "upstream_last_addr", "upstream_last_server_name",
    ];

    fn names(file: &'static str) -> BTreeSet<&'static str> {
        let names: Vec<&str> = blocks::read(file).flat_map(|block| block.names.split(' ')).collect();
        let set: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(set.len(), names.len(), "a name is there twice");
        set
    }

    #[test]
    fn every_variable_has_a_meaning_and_no_meaning_is_stale() {
        let of_exchanges = ALL.known.variables().map(|variable| variable.name);
        let mut known: BTreeSet<&str> = of_exchanges.chain(ALL.known.session_variables().iter().copied()).collect();
        let lacking: Vec<&&str> = known.iter().filter(|name| !names(VARIABLES).contains(*name)).collect();
        assert!(lacking.is_empty(), "variables.txt lacks {lacking:?}");
        known.extend(ABSENT);
        let stale: Vec<&str> = names(VARIABLES).into_iter().filter(|name| !known.contains(name)).collect();
        assert!(stale.is_empty(), "nobody has the variables {stale:?} of variables.txt");
        let present: Vec<&&str> = ABSENT.iter().filter(|name| !names(VARIABLES).contains(**name)).collect();
        assert!(present.is_empty(), "variables.txt lacks {present:?}");
    }

    #[test]
    fn every_directive_that_weir_lacks_has_a_meaning_and_no_meaning_is_stale() {
        let lacks: BTreeSet<&str> = table::names().filter(|name| !ALL.known.has(name)).collect();
        let file = names(NGINX_ONLY);
        let lacking: Vec<&&str> = lacks.difference(&file).collect();
        assert!(lacking.is_empty(), "nginx_only.txt lacks {lacking:?}");
        let stale: Vec<&&str> = file.difference(&lacks).collect();
        assert!(stale.is_empty(), "weir has {stale:?} of nginx_only.txt, or nobody has");
    }

    #[test]
    fn the_texts_are_plain_and_keep_names_and_numbers() {
        for (name, file) in [("variables.txt", VARIABLES), ("nginx_only.txt", NGINX_ONLY)] {
            let faults = blocks::tests::faults(file);
            assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
            let without_name: Vec<&str> = blocks::read(file).filter(|b| b.names.is_empty()).map(|b| b.en).collect();
            assert_eq!(without_name, [""; 0], "{name}: texts without a name");
            let open: Vec<&str> = blocks::read(file).map(|block| block.en).filter(|en| !en.ends_with('.')).collect();
            assert_eq!(open, [""; 0], "{name}: sentences without a full stop");
        }
    }

    #[test]
    fn a_variable_is_found_by_its_name_or_its_longest_prefix() {
        let of = |name: &str| variable(name).map(|(english, _)| english);
        assert!(of("http_cookie").unwrap().starts_with("All cookies"));
        assert_eq!(of("HTTP_X_Request_Id"), of("http_"));
        assert_eq!(of("upstream_http_server"), of("upstream_http_"));
        assert_eq!(of("proxy_protocol_tlv_0x01"), of("proxy_protocol_tlv_"));
        assert_ne!(of("upstream_http_server"), of("http_"));
        assert_eq!(of("args"), of("query_string"));
        assert!(of("1").is_some() && of("geoip_city").is_some() && of("memcached_key").is_some());
        for unknown in ["", "_", "10", "my_value", "args_", "uri2", "가_나"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_directive_that_weir_lacks_is_found_by_its_name() {
        assert_eq!(nginx_only("perl").unwrap().1, "Perl 함수로 응답합니다.");
        assert_eq!(nginx_only("content_by_lua_file"), nginx_only("content_by_lua_block"));
        assert!(nginx_only("include").is_some());
        assert_eq!(nginx_only("proxy_pass"), None);
        assert_eq!(nginx_only("prox_pass"), None);
    }
}
