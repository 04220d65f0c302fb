//! The table of tools. A client shows the names and the texts to a model, so they say what a tool answers and what it does not do.

use serde_json::{Value, json};

use crate::answer;
use crate::input::{self, Parameter, ParameterKind};

/// A tool.
#[derive(Debug)]
pub struct ToolRow {
    /// Its name: a promise.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its description, for a model.
    pub says: &'static str,
    /// Its arguments.
    pub parameters: &'static [Parameter],
    /// The names of its verdicts, beside those of a refusal and a failure.
    pub verdicts: &'static [&'static str],
    /// Whether it may start a stack and load it.
    pub is_experiment: bool,
}

const CONF: &str = "Path of an nginx.conf, or of the output of `nginx -T`, below a directory of the server.";
const READER: Parameter = Parameter::may(
    "reader",
    ParameterKind::OneOf(&["nginx", "weir"]),
    "The program that reads the file. Without it: weir if only weir can read the file, else nginx.",
);
const VERSION: Parameter = Parameter::may(
    "nginx_version",
    ParameterKind::Text,
    "The version of nginx, as 1.22.1. Defaults and rules depend on it.",
);
const PATH: Parameter =
    Parameter::may("path", ParameterKind::Text, "The path that gets the load, as /api?x=1. Default: /");
const RATE: Parameter = Parameter::may(
    "rate",
    ParameterKind::Number(0.1, 1_000_000.0),
    "Requests a second, sent on schedule even if answers are late. For capacity: the first rate.",
);
const CONNECTIONS: Parameter = Parameter::may(
    "connections",
    ParameterKind::Whole(1, 20_000),
    "Connections. Without rate, each sends its next request after its answer. Default: 32, for capacity 256.",
);
const SCRIPT: Parameter = Parameter::may(
    "script",
    ParameterKind::Text,
    "An Artillery script as the load: its path, or the name of a script that logs_to_script made. It replaces path, rate and connections.",
);
const SECONDS: Parameter = Parameter::may(
    "seconds",
    ParameterKind::Number(1.0, 600.0),
    "The measured time of one block, or of a watch, in seconds.",
);
const SLO: Parameter =
    Parameter::may("slo", ParameterKind::Text, "A latency limit of a quantile, as p95=50ms. Quantiles: p50, p95, p99.");

/// All tools.
pub const TOOLS: &[ToolRow] = &[
    ToolRow {
        name: "check",
        title: "Is this configuration valid?",
        says: "Checks whether weir accepts an nginx configuration, and names every problem with its line and its remedy. Reads files and starts nothing. Use it after each change of a configuration.",
        parameters: &[Parameter::must("conf", ParameterKind::Path, CONF)],
        verdicts: &["valid", "invalid", "incomplete"],
        is_experiment: false,
    },
    ToolRow {
        name: "doctor",
        title: "What is wrong with this configuration?",
        says: "Finds lines of an nginx configuration that do not do what they say, that are unsafe, slow or without effect, without any load. With a symptom (502, 504, 500, websocket, slow, limit) it shows what can cause it, the most likely first, and what an error log says.",
        parameters: &[
            Parameter::must("conf", ParameterKind::Path, CONF),
            READER,
            VERSION,
            Parameter::may(
                "symptom",
                ParameterKind::OneOf(&["502", "504", "500", "websocket", "slow", "limit"]),
                "What users see. Only findings that can cause it are shown.",
            ),
            Parameter::may(
                "error_log",
                ParameterKind::Path,
                "With symptom: nginx's error log, below a directory of the server.",
            ),
            Parameter::may("only", ParameterKind::Texts, "Names of rules; only these are applied."),
        ],
        verdicts: &["wrong", "at_risk", "notes_only", "no_finding", "log_explains"],
        is_experiment: false,
    },
    ToolRow {
        name: "explain",
        title: "Which values are in force?",
        says: "Lists the effective values of directives with the origin of each: a line of the configuration, or the default of the program and its version.",
        parameters: &[
            Parameter::must("conf", ParameterKind::Path, CONF),
            Parameter::may(
                "directive",
                ParameterKind::Text,
                "One directive. Without it: all that are written or important.",
            ),
            READER,
            VERSION,
        ],
        verdicts: &["values", "nothing"],
        is_experiment: false,
    },
    ToolRow {
        name: "diff",
        title: "Which changes can have an effect?",
        says: "Compares two configurations, and says of each change whether it can have an effect at all. Use it before an experiment: a change that repeats a default measures only noise.",
        parameters: &[
            Parameter::must("before", ParameterKind::Path, "The configuration before."),
            Parameter::must("after", ParameterKind::Path, "The configuration after."),
            READER,
            VERSION,
        ],
        verdicts: &["can_act", "no_effect", "same"],
        is_experiment: false,
    },
    ToolRow {
        name: "why",
        title: "What limits it, and how is that proved?",
        says: "Finds the resource that limits a service under load, with evidence: starts the configuration and an application in the network namespaces of a lab, sends load, and watches. With prove it squeezes each suspect and gives more of it (minutes). With running it watches an edge of this machine instead, and sends nothing. Takes a minute or more; reports progress; can be cancelled.",
        parameters: &[
            Parameter::may("conf", ParameterKind::Path, CONF),
            PATH,
            RATE,
            CONNECTIONS,
            SCRIPT,
            SECONDS,
            SLO,
            Parameter::may("prove", ParameterKind::Flag, "Prove the suspects by counter-experiments. Needs root."),
            Parameter::may(
                "inside",
                ParameterKind::Flag,
                "Show on which lock, peer, disk or CPU the threads of applications wait.",
            ),
            Parameter::may(
                "try",
                ParameterKind::Flag,
                "Try the recommended line in a copy of the configuration, beside the original.",
            ),
            Parameter::may(
                "running",
                ParameterKind::Flag,
                "Watch an edge that runs on this machine, instead of an experiment.",
            ),
            Parameter::may(
                "edge_pid",
                ParameterKind::Whole(1, 4_194_304),
                "With running: the process id of the nginx or weir. Without it: the only one.",
            ),
        ],
        verdicts: &["proved", "shared", "suspected", "policy", "unattributed", "not_saturated", "no_verdict"],
        is_experiment: true,
    },
    ToolRow {
        name: "ab",
        title: "Is the change better or worse?",
        says: "Compares two configurations by experiment in alternating blocks in the lab, and says better, worse, no difference or inconclusive, with intervals and the smallest difference that it could have seen. Without after it compares a configuration with itself: the noise of this machine. Takes minutes; reports progress; can be cancelled.",
        parameters: &[
            Parameter::must("before", ParameterKind::Path, "The configuration before."),
            Parameter::may("after", ParameterKind::Path, "The configuration after. Without it: before, beside itself."),
            PATH,
            RATE,
            CONNECTIONS,
            SCRIPT,
            SECONDS,
            Parameter::may(
                "metric",
                ParameterKind::OneOf(&["throughput", "mean", "p50", "p95", "p99", "errors", "cpu"]),
                "The metric to compare. Default: p95 at a rate, throughput without one.",
            ),
            Parameter::may(
                "pairs",
                ParameterKind::Whole(1, 24),
                "Measure exactly this many pairs. Default: 8, 16 or 24, as needed.",
            ),
            Parameter::may(
                "together",
                ParameterKind::Texts,
                "Directives that count as one change, as keepalive,proxy_http_version.",
            ),
        ],
        verdicts: &[
            "better",
            "worse",
            "no_difference",
            "negligible",
            "inconclusive",
            "trade_off",
            "as_expected",
            "no_errors",
            "reclassified",
            "not_comparable",
            "no_verdict",
        ],
        is_experiment: true,
    },
    ToolRow {
        name: "capacity",
        title: "How much load does it carry?",
        says: "Searches the largest rate at which a latency and the errors stay within limits, in the lab. Takes minutes; reports progress; can be cancelled.",
        parameters: &[
            Parameter::must("conf", ParameterKind::Path, CONF),
            PATH,
            RATE,
            CONNECTIONS,
            SCRIPT,
            SECONDS,
            SLO,
        ],
        verdicts: &["capacity", "nothing", "everything", "no_verdict"],
        is_experiment: true,
    },
    ToolRow {
        name: "load_check",
        title: "Is this load script valid, and what would it send?",
        says: "Reads an Artillery script and says whether it is valid, how many virtual users and requests it plans, and which hosts it names. Sends nothing, and runs no code of the script.",
        parameters: &[
            Parameter::must(
                "script",
                ParameterKind::Text,
                "Path of a YAML or JSON script, or the name of a script that logs_to_script made.",
            ),
            Parameter::may("environment", ParameterKind::Text, "Name of one of config.environments."),
            Parameter::may(
                "conf",
                ParameterKind::Path,
                "The configuration that the script is meant for; the next step then uses it.",
            ),
        ],
        verdicts: &["valid", "invalid", "elsewhere", "sends_nothing"],
        is_experiment: false,
    },
    ToolRow {
        name: "logs_to_script",
        title: "A load script with the traffic of access logs",
        says: "Makes an Artillery script with the mix, the rates and the sessions of access logs of nginx or Apache. The server keeps the script under a name for the other tools; it writes no file of the user and sends nothing.",
        parameters: &[
            Parameter::must(
                "logs",
                ParameterKind::Paths,
                "Access logs, also compressed by gzip, below a directory of the server.",
            ),
            Parameter::may(
                "format",
                ParameterKind::Text,
                "combined, common, vhost_combined, json, a log_format of conf by its name, or the format itself. Without it: found by the lines.",
            ),
            Parameter::may("conf", ParameterKind::Path, "The nginx.conf that has the log_format."),
            Parameter::may("host", ParameterKind::Text, "Only requests for this host."),
            Parameter::may(
                "minutes",
                ParameterKind::Whole(1, 1_440),
                "All of the log in this many minutes. Without it: its busiest hour as it is.",
            ),
            Parameter::may("speed", ParameterKind::Number(0.001, 100_000.0), "So many times as fast."),
            Parameter::may("without_assets", ParameterKind::Flag, "Leave out style sheets, scripts, images and fonts."),
        ],
        verdicts: &["made"],
        is_experiment: false,
    },
    ToolRow {
        name: "status",
        title: "The state of a running edge",
        says: "Reads the snapshot of a running edge of weir: limits beside their use, servers, upstreams, errors. Without an address: the edge of this machine.",
        parameters: &[Parameter::may(
            "address",
            ParameterKind::Text,
            "HOST:PORT of a dashboard or an API on loopback, or of a target that the person named, with a path if it has one.",
        )],
        verdicts: &["sound", "near_a_limit", "failures"],
        is_experiment: false,
    },
];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().find(|row| row.name == name)
}

impl ToolRow {
    /// The tool as a client lists it.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.says,
            "inputSchema": input::schema(self.parameters),
            "outputSchema": answer::schema(self.name, self.verdicts),
            // An experiment starts processes in namespaces of its own, and ends them; no tool changes a file of the user.
            "annotations": {
                "title": self.title, "readOnlyHint": !self.is_experiment, "destructiveHint": false, "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }
}

/// All tools with their schemas, as `docs/reference/mcp.json` has them.
pub fn page() -> String {
    let tools: Vec<Value> = TOOLS.iter().map(ToolRow::json).collect();
    format!("{:#}\n", json!({"version": answer::VERSION, "tools": tools}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_protocol() {
        for row in TOOLS {
            assert!(row.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", row.name);
            assert!(row.says.len() > 80 && row.says.ends_with('.'), "{}", row.name);
            let mut names: Vec<&str> = row.parameters.iter().map(|parameter| parameter.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), row.parameters.len(), "{}", row.name);
        }
    }

    /// No argument may carry a command line, a flag or a header field.
    #[test]
    fn no_argument_is_a_command() {
        let forbidden = ["command", "origin", "edge", "flags", "args", "header", "env", "output", "store"];
        for row in TOOLS {
            assert!(row.parameters.iter().all(|parameter| !forbidden.contains(&parameter.name)), "{}", row.name);
        }
    }
}
