//! Measurements: experiments, and the stacks that they run on.
//!
//! Neither the edge nor the dummy origin is in this crate: the lab talks to them only over sockets.
//!
//! Invariants: no edge runs in the lab's process. Even if the lab dies, its processes end: a keeper ends when its standard
//! input closes. A spoiled block stays in the run and counts for nothing.
//!
//! The path of an A/B: `src/lab/ab.rs` of the program reads two configurations and finds one factor. `ab::run` takes the
//! blocks from `schedule` one by one. For each, `stack::run` starts a keeper, and `ab::run` makes a `Block` from the keeper's
//! answer. At each look it asks `analysis`, which asks `verdict::judge`. The result is JSON. `report` and `html` are made from it.
//!
//! - `stats/`: the conclusions that the figures of blocks allow: exact intervals, power, looks, equivalence, drift,
//!   fits; pure
//! - `metric`, `verdict/`: the figures and the vocabulary, a table each: nothing else calls a configuration faster
//! - `change`, `survey`, `beside`: the differences between two configurations, and whether they are one factor; what one
//!   configuration says about the machines around it, and about the files beside it
//! - `schedule`, `search`: chooses the next block: quartets by a seed; chooses the next rate: climb, halve, confirm
//! - `ask/`: turns the stack and the load that the user asked for into orders for a keeper
//! - `stack/`: a block's machines and processes as data (`spec`). `network` makes hosts from namespaces. `group` and
//!   `credits` limit them. `keeper` starts the processes (`started`), measures them (`usage`), disturbs them and ends
//!   them. `leftovers` records what a lab leaves on the machine while it runs; `wan/` delays, loses
//!   and reorders the packets of a link
//! - `block`, `series`, `analysis`: a block's figures and whether it is valid; turns blocks into pairs and pairs into
//!   verdicts
//! - `ab`, `capacity`, `duet`, `tune`, `factorial/`: the experiments, from the first block to the run on disk: two
//!   configurations; the largest rate; both at once, to measure the cost of a request; one setting after another;
//!   several changes with separate effects
//! - `pace`: the rate that a machine bears, before a comparison
//! - `import`, `elsewhere`: reads reports of `weir load` and Artillery as blocks; compares runs from elsewhere, which
//!   have no pairs
//! - `experiment/`: labs as data: `read` parses a `lab.yml`, `run` makes its blocks for each edge and variant, `facts`
//!   checks the expectations, `page` sets nginx beside weir
//! - `watch/`: the resource use in a block, every 250 ms: threads, networks, the edge's own account; `pulse` keeps its course; `tap` adds a way
//!   to watch to a configuration; `probe/` asks programs; `inside/` finds where threads wait, by programs in the kernel
//!   (`bpf/` of this crate) or by `/proc`
//! - `waterline`: each limit beside its highest use
//! - `why/`: finds the limit: `gather` makes signals from a block, `rules` are pure functions of the signals, `prove`
//!   squeezes suspects, `say` has the six words
//! - `texts/`, `said`: every text of a report with its name, in English and Korean; a message, stored as the name and
//!   the values
//! - `store`, `report/`, `html`: runs, a file each, written once; the same as text and as a page, in the language that
//!   the caller passes
#![forbid(unsafe_code)]

pub mod ab;
pub mod analysis;
pub mod ask;
pub mod beside;
pub mod block;
pub mod capacity;
pub mod change;
pub mod command;
pub mod duet;
pub mod elsewhere;
pub mod experiment;
pub mod factorial;
pub mod html;
pub mod import;
pub mod metric;
pub mod next;
pub mod outlook;
pub mod pace;
pub mod report;
pub mod said;
pub mod schedule;
pub mod search;
pub mod series;
pub mod stack;
pub mod stats;
pub mod store;
pub mod survey;
pub mod texts;
pub mod tune;
pub mod verdict;
pub mod wan;
pub mod watch;
pub mod waterline;
pub mod why;
