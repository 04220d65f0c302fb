//! `alias` with which a client can read files outside of the directory.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "alias_traversal",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words("alias serves files outside of its directory", "alias로 지정한 디렉터리 바깥의 파일까지 나갑니다"),
    remedy: words(
        "nginx appends the rest of the path to the alias unchanged. With `location /files` and `alias /home/`, a request for /files../x reads /x. End both with a slash. /files itself then needs a redirect of its own: without the slash, it would belong to another location.",
        "location 뒤의 문자열이 alias 뒤에 그대로 붙습니다. `location /files`와 `alias /home/`이면 /files../x가 /x를 읽습니다. 둘 다 슬래시로 끝내세요. 그러면 /files 자체에는 리디렉트가 필요합니다. 슬래시가 없는 경로는 다른 location에 속하게 되기 때문입니다.",
    ),
    source: "nginx.org ngx_http_core_module, alias; gixy alias_traversal",
    check,
    fires: Example::conf("location /files { alias /home/; }"),
    silent: Example::conf("location /files/ { alias /home/; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("alias") {
        let Some(location) = spot.scope().opener().filter(|block| block.name() == "location") else { continue };
        match matches_by(location) {
            Match::Prefix(prefix) if !prefix.ends_with('/') => {
                let directory = spot.arg(0);
                let level = if directory.ends_with('/') { FindingLevel::Wrong } else { FindingLevel::Risk };
                let what = if directory.ends_with('/') {
                    said!(
                        "nginx answers {prefix}../x with the file {directory}../x",
                        "{prefix}../x 요청에 파일 {directory}../x를 보냅니다"
                    )
                } else {
                    said!(
                        "nginx answers {prefix}x with the file {directory}x, which may belong to another directory",
                        "{prefix}x 요청에 파일 {directory}x를 보내며, 이는 다른 디렉터리의 파일일 수 있습니다"
                    )
                };
                let mut words: Vec<String> = location.args().map(str::to_owned).collect();
                if let Some(path) = words.last_mut() {
                    path.push('/');
                }
                let fixed = format!("location {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
                let mut finding = Finding::at(location, what).write(format!("{fixed} {{"));
                if directory.ends_with('/') && !prefix.contains('$') {
                    finding = finding.fix(Some(edit::replace(location.statement(), &fixed)));
                    finding = finding.fix(redirect(case, location, prefix));
                }
                found.add_as(level, finding);
            }
            Match::Pattern(..) => captures(location, spot, found),
            Match::Prefix(_) | Match::Exact(_) | Match::Named(_) => {}
        }
    }
}

fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&weir_conf::quote(text.as_bytes())).into_owned()
}

/// The directory's own path without the slash goes on to lead to the directory, as nginx's redirect did before. `None` if the
/// path has a location already.
fn redirect(case: &Case<'_>, location: Spot<'_>, prefix: &str) -> Option<edit::Edit> {
    let mut others = location.scope().named("location").filter(|other| other.is_block());
    if others.any(|other| matches_by(other) == Match::Exact(prefix)) {
        return None;
    }
    let (path, target) = (quoted(prefix), quoted(&format!("{prefix}/$is_args$args")));
    let block = format!("location = {path} {{ return 301 {target}; }}");
    edit::insert_block_after(case.view.tree(), location.statement(), &block)
}

/// A capture after the directory must not leave the directory or reach its neighbour.
fn captures(location: Spot<'_>, alias: Spot<'_>, found: &mut Findings) {
    let Some(tree) = reach::pattern(location).and_then(|pattern| pattern.tree()) else { return };
    let mut before = String::new();
    for piece in reach::pieces(alias.arg(0)) {
        let name = match piece {
            ArgumentPiece::Text(text) => {
                before.push_str(text);
                continue;
            }
            ArgumentPiece::Variable(name) => name,
        };
        let group = match name.parse() {
            Ok(number) => tree.group(number),
            Err(_) => tree.group_named(name),
        };
        let Some((group, behind)) = group else { continue };
        let first = group.first();
        // Only a freely chosen part can be two dots.
        let dots = group.is_free() && first.has(b'.');
        let starts_segment = behind == ByteSet::one(b'/');
        let climbs = before.ends_with('/') && dots && !starts_segment;
        let neighbours = !before.ends_with('/') && !before.is_empty() && group.is_free() && first != ByteSet::one(b'/');
        if climbs || neighbours {
            let line = location.line();
            let what = said!(
                "${name} may begin with a character other than \"/\": the path after \"{before}\" can then leave that directory",
                "변수 ${name}의 값이 \"/\" 외의 문자로도 시작할 수 있어 \"{before}\" 뒤의 경로가 그 디렉터리를 벗어납니다"
            );
            found.add(Finding::at(location, what).write(format!("{line} {{  # let the group begin behind a slash")));
        }
        before.push('x');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nginx redirected /web to /web/. Without a location of its own, /web would belong to another one.
    #[test]
    fn the_directory_keeps_its_redirect() {
        let rows = [
            (
                "server {\nlocation /web {\nalias /a/;\n}\n}",
                "server {\nlocation /web/ {\nalias /a/;\n}\nlocation = /web { return 301 /web/$is_args$args; }\n}",
            ),
            (
                "server {\nlocation ^~ \"/a b\" {\nalias /a/;\n}\n}",
                "server {\nlocation ^~ \"/a b/\" {\nalias /a/;\n}\nlocation = \"/a b\" { return 301 \"/a b/$is_args$args\"; }\n}",
            ),
            (
                "server {\nlocation /web {\nalias /a/;\n}\nlocation = /web {\nreturn 404;\n}\n}",
                "server {\nlocation /web/ {\nalias /a/;\n}\nlocation = /web {\nreturn 404;\n}\n}",
            ),
        ];
        for (before, after) in rows {
            assert_eq!(crate::rules::mended(&RULE, before), after);
        }
    }
}
