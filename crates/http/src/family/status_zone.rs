//! `status_zone`: the names of the zones that count requests.
//!
//! <https://nginx.org/en/docs/http/ngx_http_api_module.html#status_zone>. weir counts every server and location by
//! default; `status_zone` merges and renames zones. `docs/guide/live.md` explains them to users.

use weir_conf::Statement;

use crate::hold::zone_names::NAME_BYTES_MAX;
use crate::read::build::Build;
use crate::read::directive::{Directive, LOCATION, LOCATION_IF, ONE, SERVER};
use crate::read::families::Family;
use crate::text::refusal::Refusal;

crate::settings! {
    /// `status_zone` of the server.
    server: Option<String> = None,
    /// `status_zone` of a location; with `off`, only its server counts it.
    location: Option<String> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
#[rustfmt::skip]
pub static FAMILY: Family = Family::new("status_zone", &[
    Directive::new("status_zone", SERVER.or(LOCATION).or(LOCATION_IF), ONE,
        "Names the zone that counts the requests; several blocks may share a zone. By default the zone of a server has \
         the server's first name, and the zone of a location is SERVER/LOCATION; off counts a location only in its \
         server's zone.", status_zone),

]);

fn status_zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Refusal::whole(format!("invalid zone name \"{name}\""))
            .todo(format!("write a name of 1 to {NAME_BYTES_MAX} bytes, without control characters")));
    }
    let is_server = b.scope().context == SERVER;
    let settings = &mut b.settings().status_zone;
    let place = if is_server { &mut settings.server } else { &mut settings.location };
    if place.is_some() {
        return Err(Refusal::directive("is duplicate"));
    }
    *place = Some(Some(name));
    Ok(())
}
