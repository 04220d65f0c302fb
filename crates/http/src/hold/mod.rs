//! Things that live longer than an exchange: a worker's, a connection's, and those that all workers share.
//!
//! - `worker`, `extensions`, `own`, `colleagues`: the things a worker owns; values that families keep with a worker, a
//!   configuration or an exchange, one of each type; how a worker reaches the others
//! - `conn/`, `client`, `patience`, `frames`: a connection's socket and waits; the facts about its client; how long weir
//!   waits; the stream that carries an exchange
//! - `split`: which clients get the configuration beside the one in force
//! - `above`, `settings`: typed places in which the crates above keep settings and declarations
//! - `zone`, `zone_names`, `host_table`, `table_place`, `bounds`: tables in which all workers count; the bounds for all
//!   clients together
//! - `open_files`: files that a worker keeps open
//! - `board/`, `counters`: the cells in which a worker counts, by name
//! - `dns/`: names resolved while the edge serves: the known answers (`book`), the questions (`ask`)
//! - `paths`, `reach`: where relative names point to; the places of the file system that a configuration names

pub mod above;
pub mod board;
pub mod bounds;
pub mod client;
pub mod colleagues;
pub mod conn;
pub mod counters;
pub mod dns;
pub mod extensions;
pub mod frames;
pub mod host_table;
pub mod open_files;
pub mod own;
pub mod paths;
pub mod patience;
pub mod reach;
pub mod settings;
pub mod split;
pub mod table_place;
pub mod worker;
pub mod zone;
pub mod zone_names;
