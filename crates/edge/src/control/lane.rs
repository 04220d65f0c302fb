//! A lane: a configuration that clients get, with everything that begins and ends with it.
//!
//! A configuration owns its log files, its caches, its groups and their health, its limits, its tokens and its exporter of
//! spans. Workers make a `Generation` of it; it ends with the last exchange that began with it, on the last worker. If another
//! configuration of the process has a part of the same name, both share it or the newer one continues it (`adopt` of the
//! families). So a lane can begin and end beside another one. `control` has the rest: the process has it once.

use std::sync::Arc;

use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::trace;
use weir_net::process::Identity;
use weir_proxy::family::cache::facts::Use;
use weir_proxy::family::proxy;

use crate::family::{ALL, dashboard};
use crate::live::Live;
use crate::load::worker_count;
use crate::{log_files, recorder};

/// Makes a lane of a configuration, which continues the parts of `before`. Clients do not get it yet.
///
/// # Errors
/// The configuration does not fit to `before`, or a file cannot be opened. Then nothing has changed.
pub fn open(
    mut conf: Conf,
    before: Option<&Conf>,
    live: &Live,
    identity: Option<&Identity>,
) -> Result<Arc<Conf>, String> {
    if let Some(before) = before {
        ALL.adopt(&mut conf, before)?;
    }
    log_files::open_all(&conf)?;
    dashboard::read(&conf)?;
    recorder::read_keys(&conf)?;
    weir_proxy::declared(&conf).cache.open(|number| cache_temporary(&conf, number), identity);
    trace::open(&conf, worker_count(&conf), identity);
    live.enlist(&mut conf);
    Ok(Arc::new(conf))
}

/// Where a cache's files are written first: in the directory for temporary files of answers (`proxy_temp_path`) of
/// the first location that uses the cache. nginx reads it from each location; in weir, a cache's thread has one such
/// directory. `None` if no location uses the cache: then nobody asked for the directory.
fn cache_temporary(conf: &Conf, number: usize) -> Option<String> {
    let uses = |location: &&Location| match &weir_proxy::values(location).cache.zone {
        Use::Zone(_, used) => *used == Some(number),
        Use::Named(_) => true,
        Use::Off => false,
    };
    let location = conf.locations.iter().find(uses)?;
    Some(conf.paths.temporary(weir_proxy::values(location).proxy.temp_path.as_deref(), proxy::TEMPORARY))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::path::{Path, PathBuf};

    use weir_cache::store::Zone;

    use super::*;

    /// A directory of a test; removed with it.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let place = std::env::temp_dir().join(format!("weir-lane-{name}-{}", std::process::id()));
            fs::create_dir_all(&place).unwrap();
            Place(place)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A lane with a cache and a limit that have names, and with more statements of `http`.
    fn lane(place: &Path, more: &str, before: Option<&Conf>, live: &Live) -> Result<Arc<Conf>, String> {
        let (place, cache) = (place.display(), if more.contains("zone=c:") { "" } else { CACHE });
        let (cache, more) = (cache.replace('~', &place.to_string()), more.replace('~', &place.to_string()));
        let (conf, problems) = crate::of_text(&format!(
            "error_log {place}/error; events {{}} http {{ access_log {place}/access; {cache} {more} limit_req_zone $uri zone=l:1m rate=1r/s; \
             server {{ listen 1; server_name a.test; location / {{ limit_req zone=l; return 200 x; }} }} }}"
        ));
        assert_eq!(problems, [""; 0]);
        open(conf.unwrap(), before, live, None)
    }

    const CACHE: &str = "proxy_cache_path ~/c keys_zone=c:1m;";

    fn cache(conf: &Conf, name: &[u8]) -> Arc<Zone> {
        let declared = &weir_proxy::declared(conf).cache;
        declared.opened(declared.find(name).unwrap()).unwrap().zone.clone()
    }

    #[test]
    fn a_lane_shares_the_names_of_the_one_before_and_ends_alone() {
        let (place, live) = (Place::new("beside"), Live::new(Default::default()));
        let main = lane(&place.0, "", None, &live).unwrap();
        let beside = lane(&place.0, "proxy_cache_path ~/d keys_zone=d:1m;", Some(&main), &live).unwrap();
        assert!(Arc::ptr_eq(&cache(&main, b"c"), &cache(&beside, b"c")), "one cache for both");
        let cells = |conf: &Conf| conf.locations.iter().map(|location| location.cell).collect::<Vec<_>>();
        assert_eq!(cells(&main), cells(&beside), "one cell for each name");
        let own = Arc::downgrade(&cache(&beside, b"d"));
        drop(beside);
        // The thread of the cache may hold it for a moment.
        while own.strong_count() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&main), 1, "nothing of the other keeps it");
    }

    #[test]
    fn a_lane_that_is_refused_leaves_the_one_before_as_it_is() {
        let (place, live) = (Place::new("refused"), Live::new(Default::default()));
        let main = lane(&place.0, "", None, &live).unwrap();
        for more in [
            "proxy_cache_path ~/other keys_zone=c:1m;",
            "dashboard_token env:WEIR_NO_SUCH; server { listen 2; location /w/ { dashboard; } }",
        ] {
            assert!(lane(&place.0, more, Some(&main), &live).is_err(), "{more}");
        }
        let next = lane(&place.0, "", Some(&main), &live).unwrap();
        assert!(Arc::ptr_eq(&cache(&main, b"c"), &cache(&next, b"c")));
    }

    #[test]
    fn a_lane_without_a_dashboard_does_not_end_the_process_s_history() {
        let (place, live) = (Place::new("history"), Live::new(Default::default()));
        let page = format!(
            "dashboard_history {}/day; server {{ listen 2; location /w/ {{ dashboard; }} }}",
            place.0.display()
        );
        let main = lane(&place.0, &page, None, &live).unwrap();
        dashboard::keep(&main).unwrap();
        let keeps_day = || crate::declared(&main).dashboard.hall().keeps_day();
        let beside = lane(&place.0, "", Some(&main), &live).unwrap();
        assert!(keeps_day(), "only the process decides");
        dashboard::keep(&beside).unwrap();
        assert!(!keeps_day(), "once the configuration is in force");
    }
}
