//! A lab's run as text, and as a part of the page that other runs have.

use serde_json::Value;

/// What was expected and found, a line each.
pub fn text(run: &Value) -> String {
    let word = |json: &Value| json.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![format!("Lab {}: {}", word(&run["name"]), word(&run["title"]))];
    if let Some(prior) = run["prior"].as_str().filter(|prior| !prior.is_empty()) {
        lines.push(format!("  expected: {prior}"));
    }
    let mut at = String::new();
    for one in rows(run) {
        let head = [&one["edge"], &one["variant"]].map(word).join(" ").trim().to_owned();
        if at != head {
            let versions = run["edges"].as_array().into_iter().flatten();
            let version =
                versions.into_iter().find(|edge| edge["edge"] == one["edge"]).map(|edge| word(&edge["version"]));
            lines.push(format!("  {head} ({})", version.unwrap_or_default()));
            at = head;
        }
        let verdict = if one["holds"] == true { "holds" } else { "FAILS" };
        lines.push(format!(
            "    {verdict}: {}: {} (wanted: {})",
            word(&one["says"]),
            word(&one["found"]),
            word(&one["wanted"])
        ));
    }
    lines.push(word(&run["verdict"]["text"]));
    lines.join("\n") + "\n"
}

/// The same as a page's body.
pub fn html(run: &Value, escape: &dyn Fn(&str) -> String) -> String {
    let word = |json: &Value| escape(json.as_str().unwrap_or_default());
    let kind = if run["verdict"]["name"] == "holds" { "good" } else { "bad" };
    let rows: String = rows(run)
        .map(|one| {
            let verdict = if one["holds"] == true { "holds" } else { "<b>fails</b>" };
            let cells = [&one["edge"], &one["variant"], &one["says"], &one["wanted"], &one["found"]].map(word);
            format!("<tr><td>{}</td><td>{verdict}</td></tr>\n", cells.join("</td><td>"))
        })
        .collect();
    format!(
        "<h1>{}: {}</h1>\n<p class=\"verdict {kind}\">{}</p>\n<p class=\"soft\">{}</p>\n<div class=\"wide\"><table><tr><th>edge</th><th>variant</th><th>expected</th><th>wanted</th><th>found</th><th></th></tr>\n{rows}</table></div>\n<footer>weir {} · {} CPUs · Linux {} · seed {}</footer>\n",
        word(&run["name"]),
        word(&run["title"]),
        word(&run["verdict"]["text"]),
        word(&run["prior"]),
        word(&run["environment"]["weir"]),
        run["environment"]["cpus"],
        word(&run["environment"]["kernel"]),
        run["seed"],
    )
}

fn rows(run: &Value) -> impl Iterator<Item = &Value> {
    run["expected"].as_array().into_iter().flatten()
}
