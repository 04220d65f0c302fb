//! Connections to an origin that could be kept, but each request asks the origin to close its connection.

use std::collections::HashMap;

use crate::possible;
use crate::rule::prelude::*;
use crate::upgrade::UpgradeVariable;

pub static RULE: Rule = Rule {
    id: "inert_upstream_keepalive",
    level: FindingLevel::Wrong,
    group: Group::Speed,
    symptoms: &[Symptom::BadGateway, Symptom::Slow, Symptom::Limit],
    says: words(
        "Each request asks the origin to close the connection, so keepalive keeps none",
        "요청마다 오리진에 연결을 닫으라고 하므로 keepalive가 유지할 연결이 없습니다",
    ),
    remedy: words(
        "An origin closes the connection after \"Connection: close\", and after HTTP/1.0 without \"Connection: keep-alive\". nginx before 1.29.7 sends HTTP/1.0 and \"Connection: close\" unless both lines are there: `proxy_http_version 1.1;` and `proxy_set_header Connection \"\";`. A map for WebSockets needs an empty value for plain requests: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
        "오리진은 \"Connection: close\" 요청 뒤와 \"Connection: keep-alive\"가 없는 HTTP/1.0 요청 뒤에 연결을 닫습니다. 1.29.7 이전의 nginx는 두 줄 `proxy_http_version 1.1;`과 `proxy_set_header Connection \"\";`이 없으면 HTTP/1.0과 \"Connection: close\"로 요청합니다. WebSocket용 map은 일반 요청에 빈 값을 주어야 합니다: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
    ),
    source: "nginx.org ngx_http_upstream_module, keepalive; nginx CHANGES 1.29.7; RFC 9112 §9.3, §9.6; lab.md B02, 2-7, E2d",
    check,
    fires: Example::with(
        "http { upstream a { server 10.0.0.1; keepalive 64; } server { location / { proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 22, 1)),
    ),
    silent: Example::with(
        "http { upstream a { server 10.0.0.1; keepalive 64; } server { location / { proxy_http_version 1.1; proxy_set_header Connection ''; proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 22, 1)),
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let variable = upgrade::upgrade_variable(case.view);
    let mut known = HashMap::new();
    let mut is_harmless = |map: Spot<'_>| *known.entry(map.at()).or_insert_with(|| harms_nothing(case, map));
    for (pass, upstream) in passes(case) {
        let Some(kept) = kept(case, upstream) else { continue };
        let Some(closing) = closing(case, pass) else { continue };
        let group = pass.arg(0).split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
        let kept_words = match kept {
            Kept::Written(count) => format!("keepalive {count}"),
            Kept::Always => "keepalive".to_owned(),
        };
        let what = match closing {
            Closing::Missing { .. } => said!(
                "each request to \"{}\" opens and closes a connection: {} has no connection to keep",
                "업스트림 \"{}\": 요청마다 연결을 열고 닫아 유지할 연결이 없습니다 ({})",
                group,
                kept_words
            ),
            Closing::Field(_, true) => said!(
                "for a plain request, Connection is \"close\": each request to \"{}\" opens and closes a connection, and {} has no connection to keep",
                "업스트림 \"{}\": 일반 요청의 Connection이 \"close\"라서 요청마다 연결을 열고 닫아 유지할 연결이 없습니다 ({})",
                group,
                kept_words
            ),
            Closing::Field(_, false) => said!(
                "Connection can be \"close\" for a plain request: such a request to \"{}\" opens and closes a connection in spite of {}",
                "업스트림 \"{}\": 일반 요청의 Connection이 \"close\"일 수 있습니다. 그런 요청은 연결을 열고 닫습니다 ({}의 효과 없음)",
                group,
                kept_words
            ),
        };
        let (line, fix) = remedy(pass, &closing, &variable, &mut is_harmless);
        let mut finding = Finding::at(pass, what).write(line);
        finding.fix = fix.unwrap_or_default();
        // If the nginx version is unknown, it may be new enough.
        let is_known =
            !matches!(closing, Closing::Missing { .. }) || case.is_weir() || case.facts.version_is_told.is_some();
        let is_certain = is_known && !matches!(closing, Closing::Field(_, false));
        let is_asked = matches!(kept, Kept::Written(_));
        found.add_as(if is_certain && is_asked { RULE.level } else { FindingLevel::Risk }, finding);
    }
}

/// Connections that may wait for the next request.
enum Kept<'v> {
    /// The upstream says how many.
    Written(&'v str),
    /// As many as by default.
    Always,
}

/// Whether the target keeps connections to this group, or to an address in `proxy_pass` itself. nginx keeps none to
/// an address in any version.
fn kept<'v>(case: &Case<'v>, upstream: Option<Spot<'v>>) -> Option<Kept<'v>> {
    let written = upstream.and_then(|upstream| upstream.inside().get("keepalive"));
    match written {
        Some(written) => (written.arg(0) != "0").then(|| Kept::Written(written.arg(0))),
        None => {
            let is_by_default = case.is_weir() || upstream.is_some() && case.is_surely(Version(1, 29, 7));
            is_by_default.then_some(Kept::Always)
        }
    }
}

/// The reason why the origin closes the connection.
enum Closing<'v> {
    /// HTTP/1.1, the Connection field, or both are not set.
    Missing { version: bool, field: bool },
    /// The value of this `proxy_set_header`; whether it is so for every plain request.
    Field(Spot<'v>, bool),
}

fn closing<'v>(case: &Case<'v>, pass: Spot<'v>) -> Option<Closing<'v>> {
    let is_new = case.is_surely(Version(1, 29, 7));
    let version = pass.scope().effective("proxy_http_version");
    // HTTP/2 has no Connection.
    if version.is_some_and(|spot| spot.arg(0) == "2") {
        return None;
    }
    let is_old = version.map_or(!is_new, |spot| spot.arg(0) == "1.0");
    let connection = upgrade::connection(pass);
    let values = connection.map(|field| upgrade::values(field, pass, PossibleRequest::Plain));
    let asks_to_keep = |value: &str| upgrade::has_option(value, "keep-alive") && !upgrade::ends(value);
    if is_old && values.as_ref().is_some_and(|values| values.always(asks_to_keep)) {
        return None;
    }
    let lacks_field = connection.is_none() && !is_new;
    if is_old || lacks_field {
        return Some(Closing::Missing { version: is_old, field: lacks_field });
    }
    let (field, values) = connection.zip(values)?;
    let always = values.always(upgrade::ends);
    (always || values.sometimes(upgrade::ends)).then_some(Closing::Field(field, always))
}

/// The line to write, and the edits if they harm nothing else. `is_harmless` says whether a map may get an empty value.
fn remedy(
    pass: Spot<'_>,
    closing: &Closing<'_>,
    variable: &UpgradeVariable,
    is_harmless: &mut dyn FnMut(Spot<'_>) -> bool,
) -> (String, Option<Vec<edit::Edit>>) {
    let headers = pass.scope().effective_all("proxy_set_header");
    let is_upgrade = |spot: &Spot<'_>| spot.arg(0).eq_ignore_ascii_case("upgrade") && !spot.arg(1).is_empty();
    let is_for_websockets = headers.iter().any(is_upgrade);
    // An empty Connection beside Upgrade would end WebSockets.
    let value = if is_for_websockets { variable.name.as_str() } else { "\"\"" };
    let new_field = format!("proxy_set_header Connection {value}");
    let with_map = |lines: &str, edits: Option<Vec<edit::Edit>>| match lines.contains(value) && is_for_websockets {
        true => (variable.to_write(lines), edits.and_then(|edits| variable.with_map(edits))),
        false => (format!("{lines};"), edits),
    };
    let field = match closing {
        Closing::Missing { version, field } => {
            let mut missing = Vec::new();
            if *version {
                missing.push("proxy_http_version 1.1".to_owned());
            }
            if *field {
                missing.push(new_field);
            }
            return with_map(&missing.join("; "), edits_for(pass, &missing));
        }
        Closing::Field(field, _) => *field,
    };
    let (view, name) = (pass.view(), field.arg(1).trim_start_matches('$'));
    let map = possible::definition(view, name).filter(|_| field.arg(1).starts_with('$'));
    if let Some((map, entry)) = map.and_then(|map| Some((map, possible::entry_for(map, PossibleRequest::Plain)?))) {
        let edit = match entry.name().is_empty() {
            true => Some(edit::replace(entry.statement(), "'' ''")),
            false => edit::insert_into(view.tree(), map.statement(), "'' ''"),
        };
        let edits = edit.filter(|_| is_harmless(map)).map(|edit| vec![edit]);
        return (format!("{} {{ … '' ''; }}", map.line()), edits);
    }
    let is_constant = reach::variables(field.arg(1)).next().is_none();
    let is_own = is_constant && field.scope().is(pass.scope());
    with_map(&new_field, is_own.then(|| vec![edit::replace(field.statement(), &new_field)]))
}

/// Whether each use of a map's variable is the Connection field of a `proxy_pass` that can keep connections. nginx keeps
/// none elsewhere: without `close`, nginx would close each connection first, and the kernel would keep its port for 60 s.
fn harms_nothing(case: &Case<'_>, map: Spot<'_>) -> bool {
    let variable = map.arg(1).trim_start_matches('$');
    let uses = |spot: &Spot<'_>| {
        !spot.is(map) && spot.args().any(|arg| reach::variables(arg).any(|name| name.eq_ignore_ascii_case(variable)))
    };
    let is_field = |spot: Spot<'_>| spot.name() == "proxy_set_header" && spot.arg(0).eq_ignore_ascii_case("connection");
    let keeps = |pass: Spot<'_>| {
        let is_used = upgrade::connection(pass).is_some_and(|field| uses(&field));
        !is_used || upstream(case, pass).is_some_and(|upstream| kept(case, upstream).is_some())
    };
    case.view.all().filter(uses).all(is_field) && case.view.named("proxy_pass").all(keeps)
}

/// The upstream of a `proxy_pass`: `Some(None)` for an address, and `None` if variables name the upstream.
fn upstream<'v>(case: &Case<'v>, pass: Spot<'v>) -> Option<Option<Spot<'v>>> {
    let (_, rest) = pass.arg(0).split_once("://")?;
    let name = rest.split('/').next().filter(|name| !name.contains('$'))?;
    Some(case.view.upstream(name))
}

/// Each `proxy_pass` of `http` with its upstream; `None` for an address. Without those whose address has variables.
fn passes<'v>(case: &Case<'v>) -> Vec<(Spot<'v>, Option<Spot<'v>>)> {
    let pass = case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream"));
    pass.filter_map(|pass| Some((pass, upstream(case, pass)?))).collect()
}

/// Each `proxy_pass` to an upstream of this file, with that upstream.
pub fn to_groups<'v>(case: &Case<'v>) -> Vec<(Spot<'v>, Spot<'v>)> {
    passes(case).into_iter().filter_map(|(pass, upstream)| Some((pass, upstream?))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use crate::Facts;
    use crate::target::Target;

    /// The findings of this rule for a file, in nginx 1.31.5.
    fn findings(conf: &str) -> Vec<Finding> {
        let (tree, problems) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        assert_eq!(problems, [], "{conf}");
        let facts = Facts { version_is_told: Some(Version(1, 31, 5)), ..Facts::default() };
        let all = crate::examine(&tree, Version(1, 31, 5), &facts);
        all.into_iter().filter(|finding| finding.rule == RULE.id).collect()
    }

    /// nginx keeps no connection to an address that variables name, so `close` has to stay there.
    #[test]
    fn a_map_that_another_proxy_pass_needs_stays() {
        let conf = |more: &str| {
            format!(
                "http {{ map $http_upgrade $c {{ default upgrade; '' close; }} upstream app {{ server 10.0.0.1; keepalive 16; }} server {{ proxy_set_header Connection $c; location / {{ proxy_pass http://app; }} {more} }} }}"
            )
        };
        let fixes = |more: &str| findings(&conf(more)).iter().map(|finding| finding.fix.len()).collect::<Vec<_>>();
        assert_eq!(fixes(""), [1]);
        assert_eq!(fixes("location /v { proxy_pass http://$arg_host; }"), [0]);
    }

    /// nginx refuses `proxy_http_version` and `proxy_set_header` in these blocks.
    #[test]
    fn no_line_goes_into_a_block_that_refuses_it() {
        for block in ["if ($arg_a)", "limit_except GET"] {
            let conf = format!(
                "http {{ upstream app {{ server 10.0.0.1; keepalive 16; }} server {{ location / {{ proxy_http_version 1.0; {block} {{ proxy_pass http://app; }} }} }} }}"
            );
            let found = findings(&conf);
            assert!(found.len() == 1 && found[0].fix.is_empty(), "{block}: {found:?}");
        }
    }

    /// Upgrade without Connection: nginx before 1.29.7 says `close` to the origin.
    #[test]
    fn a_location_for_websockets_gets_no_empty_connection() {
        let conf = "http { upstream app { server 10.0.0.1; keepalive 16; } server { location / { proxy_set_header Upgrade $http_upgrade; proxy_pass http://app; } } }";
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        let facts = Facts { version_is_told: Some(Version(1, 22, 1)), ..Facts::default() };
        let all = crate::examine(&tree, Version(1, 22, 1), &facts);
        let own = all.into_iter().find(|finding| finding.rule == RULE.id);
        let written = own.and_then(|finding| finding.write).unwrap_or_default();
        assert!(written.contains("proxy_set_header Connection $connection_upgrade;"), "{written}");
    }

    #[test]
    fn the_line_to_write_has_its_map() {
        let conf = "http { upstream app { server 10.0.0.1; keepalive 16; } server { location / { proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection close; proxy_pass http://app; } } }";
        let written: Vec<_> = findings(conf).into_iter().filter_map(|finding| finding.write).collect();
        let map = "map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }";
        assert_eq!(written, [format!("{map} proxy_set_header Connection $connection_upgrade;")]);
    }

    /// The findings of this rule for the location's lines, with these lines before the upstream.
    fn levels(target: Target, maps: &str, group: &str, lines: &str, to: &str) -> Vec<FindingLevel> {
        let conf = format!(
            "http {{ {maps} upstream app {{ server 10.0.0.1; {group} }} server {{ location / {{ {lines} proxy_pass http://{to}; }} }} }}"
        );
        let files = weir_conf::MemoryFiles::new().with("/f", &conf);
        let (tree, problems) = crate::load(&files, "/f", "/");
        assert_eq!(problems, [], "{conf}");
        let facts = Facts { version_is_told: Some(target.version()), ..Facts::default() };
        let findings = crate::examine(&tree, target, &facts);
        findings.iter().filter(|finding| finding.rule == RULE.id).map(|finding| finding.level).collect()
    }

    /// We counted the connections of six requests at an origin. The rule is silent if the count was one.
    #[test]
    fn the_value_for_a_plain_request_decides_in_every_version() {
        let recipe = "map $http_upgrade $c { default upgrade; '' close; }";
        let empty = "map $http_upgrade $c { default upgrade; '' ''; }";
        let wrong = vec![FindingLevel::Wrong];
        let field = |value: &str| format!("proxy_http_version 1.1; proxy_set_header Connection {value};");
        let rows = [
            ("", "upgrade", vec![]),
            ("", "keep-alive", vec![]),
            ("", "Keep-Alive", vec![]),
            ("", "$http_connection", vec![]),
            ("", "''", vec![]),
            ("", "close", wrong.clone()),
            ("", "'keep-alive, Close'", wrong.clone()),
            (empty, "$c", vec![]),
            (recipe, "$c", wrong.clone()),
            ("map $http_upgrade $c { default close; websocket upgrade; }", "$c", wrong.clone()),
            ("map $http_upgrade $a { '' x; } map $a $c { x close; }", "$c", wrong.clone()),
            ("map $cookie_a $c { default close; a ''; }", "$c", vec![FindingLevel::Risk]),
        ];
        for target in [Target::Nginx(Version(1, 22, 1)), Target::Nginx(Version(1, 31, 5)), Target::Weir] {
            for (maps, value, expected) in &rows {
                let found = levels(target, maps, "keepalive 16;", &field(value), "app");
                assert_eq!(found, *expected, "{target}: {maps} {value}");
            }
            let set = format!("set $c close; {}", field("$c"));
            assert_eq!(levels(target, "", "keepalive 16;", &set, "app"), wrong, "{target}");
            // The `set` of the location of the `proxy_pass` counts, wherever the field is written.
            let inherits = format!("{} location /a {{ set $c ''; proxy_pass http://app; }} set $c close;", field("$c"));
            assert_eq!(levels(target, "", "keepalive 16;", &inherits, "app"), wrong, "{target}");
            // With it, an origin keeps the connection of a request of HTTP/1.0, too.
            let old = "proxy_http_version 1.0; proxy_set_header Connection keep-alive;";
            assert_eq!(levels(target, "", "keepalive 16;", old, "app"), vec![], "{target}");
            assert_eq!(levels(target, "", "keepalive 16;", "proxy_http_version 1.0;", "app"), wrong, "{target}");
        }
        let (old, new) = (Target::Nginx(Version(1, 22, 1)), Target::Nginx(Version(1, 31, 5)));
        let at = |target, group: &str, to: &str| levels(target, recipe, group, &field("$c"), to);
        // nginx keeps connections to a group by default since 1.29.7, and to an address never. weir keeps both.
        assert_eq!((at(old, "", "app"), at(new, "", "app")), (vec![], vec![FindingLevel::Risk]));
        assert_eq!((at(new, "keepalive 0;", "app"), at(new, "", "10.0.0.9")), (vec![], vec![]));
        assert_eq!(
            (at(Target::Weir, "", "app"), at(Target::Weir, "", "10.0.0.9")),
            (vec![FindingLevel::Risk], vec![FindingLevel::Risk])
        );
    }
}
