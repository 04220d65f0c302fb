//! Tasks on the project itself, written in Rust: `cargo xtask COMMAND`.
//!
//! Nothing here becomes part of weir, and nothing here depends on how weir works.
//!
//! - `ci`, `harness`, `end_to_end`, `sanitize`, `fuzz`, `labs`, `nginx_suite`: runs of tests
//! - `tidy/`: the rules that a machine can check, each a pure function of the checkout
//! - `format`, `deny`, `profile`: formatting, the rules for dependencies, a profile for a release
//! - `book/`: makes the documents a site: `pages` has their order, `links` mends the links in mdBook's pages, `search` writes
//!   the texts that `search.js` looks through, `check` looks for broken links
//! - `package/`: one file for each product: Debian packages, tarball, image, list of parts, checksums. `given` is their input,
//!   `stage` makes archives whose bytes do not depend on the machine, `check` builds twice
//! - `cross`: weir for Linux on arm64, and its verbs for clients tried under qemu

#![forbid(unsafe_code)]
// The bans are for weir: its threads and its clock are those of `net`.
#![allow(clippy::disallowed_methods)]

mod book;
mod ci;
mod cross;
mod deny;
mod end_to_end;
mod files;
mod format;
mod fuzz;
mod harness;
mod labs;
mod nginx_suite;
mod package;
mod profile;
mod run;
mod sanitize;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci                   all checks that a commit must pass
  tests                the programs of tests alone, as ci runs them
  fmt [--check]        formats every file; `cargo fmt` misses modules that macros declare
  tidy                 the project's rules: dependencies between crates, places, documents, words
  vtc [FILTER]         the end-to-end scripts against weir
  oracle [FILTER]      the same scripts and applications against nginx
  deny                 the rules for dependencies, deny.toml: licences, sources, versions
  book                 the documents as a site that needs no network, English and Korean, in target/book/html
  fuzz …               the targets of all parsers (its own --help says more)
  labs                 the field reports' configurations, some seconds each, with a release build
  sanitize             the tests of net and wire under AddressSanitizer
  profile              a profile of weir at the bench's workloads, for package --profile (a build and a minute)
  package …            packages, tarball, image and list of parts in target/package (its own --help says more)
  cross [PROFILE]      weir for Linux on arm64 in target/cross, and its verbs for clients tried under qemu
  nginx-suite …        nginx's own test suite against weir (its own --help says more)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = arguments.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let done = match command {
        "ci" => ci::ci(&root()),
        "tests" => ci::tests(),
        "fmt" => format::format(&root(), rest.iter().any(|word| word == "--check")),
        "tidy" => tidy::tidy(&root()),
        "vtc" => end_to_end::vtc(rest),
        "oracle" => end_to_end::oracle("dev", rest),
        "deny" => deny::deny(&root()),
        "book" => book::book(&root(), rest),
        "fuzz" => fuzz::fuzz(rest),
        "labs" => labs::labs(&root(), &root().join("target/release/weir")),
        "sanitize" => sanitize::sanitize(&root()),
        "profile" => profile::profile(&root()),
        "package" => package::package(&root(), rest),
        "cross" => cross::cross(&root(), rest),
        "nginx-suite" => nginx_suite::nginx_suite(&root(), rest),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the checkout from which this xtask was built.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
