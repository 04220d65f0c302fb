//! The thread that looks after all certificates of a configuration: one task for each authority, so that one that hangs
//! delays no other.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use weir_acme::plan::Plan;
use weir_acme::{AccountKey, CertificateOrder, Surroundings, Tended, Tending, answer, tend};
use weir_net::identity::assume;
use weir_net::log::{self, Level, Os};
use weir_net::process::Identity;
use weir_net::worker::{self, Remote};
use weir_net::{clock, timer};

use super::cell::Cell;
use super::challenges::Challenges;
use super::outside::Outside;
use super::responder::{self, ResponderSockets};
use super::share;
use super::state::Kept;
use super::together;
use super::work::{AccountKeySource, KeptWork, Work};

/// The shortest pause between two rounds of one authority.
const ROUND_MIN: Duration = Duration::from_secs(1);

/// The longest sleep: then weir looks at the clock again, which may have been moved.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// The pause before another try to read or to make the account's key.
const KEY_PAUSE: Duration = Duration::from_secs(60);

/// The thread.
pub struct Agent {
    remote: Remote,
}

impl Agent {
    /// Puts the certificates of the files in force, and starts the thread as `identity`.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(
        works: Vec<Arc<Work>>,
        challenges: Arc<Challenges>,
        responder: Option<(ResponderSockets, u32)>,
        identity: Option<Identity>,
    ) -> io::Result<Agent> {
        let works: Vec<(Arc<Work>, Vec<Tended>)> = works
            .into_iter()
            .map(|work| {
                let tended = restore(&work);
                (work, tended)
            })
            .collect();
        let remote = worker::start("acme", None, move || {
            if !assume(identity.as_ref()) {
                return;
            }
            if let Some(share) = works.iter().find_map(|(work, _)| work.share.clone()) {
                worker::spawn(share::follow(share, challenges.clone()));
            }
            if let Some((sockets, ttl_s)) = responder {
                responder::start(&sockets, ttl_s, &challenges);
            }
            for (work, tended) in works {
                worker::spawn(run(work, tended, challenges.clone()));
            }
        })?;
        Ok(Agent { remote })
    }

    /// Ends the thread, and waits for it: afterwards it changes no file.
    pub fn stop(&self) {
        self.remote.stop();
        self.remote.join();
    }
}

/// Reads what an earlier process has kept.
fn restore(work: &Work) -> Vec<Tended> {
    work.orders.iter().map(|(order, cell)| restored(work, order, cell)).collect()
}

fn restored(work: &Work, order: &CertificateOrder, cell: &Cell) -> Tended {
    let Kept { issued, begun, fault } =
        work.directory.as_ref().map(|directory| directory.order(order)).unwrap_or_default();
    if let Some(fault) = fault {
        let (issuer, id) = (&work.issuer.name, &cell.id);
        log::global(
            Level::Warn,
            format_args!(
                "cannot load certificate from state path: {fault}, acme issuer: \"{issuer}\", order: \"{id}\""
            ),
        );
    }
    // Without files, the certificate of the configuration before stays in force.
    let held = cell.held().and_then(|held| {
        let text = |text: &str| text.strip_prefix("data:").unwrap_or(text).to_owned();
        weir_acme::Issued::kept(text(&held.chain).as_bytes(), &text(&held.key)).ok()
    });
    let Some(issued) = issued.or(held) else {
        return Tended { order: order.clone(), plan: Plan::empty(), renewal_id: None, begun, error: None };
    };
    if let Err(why) = cell.put(&issued) {
        log::global(Level::Warn, format_args!("{why}, acme issuer: \"{}\", order: \"{}\"", work.issuer.name, cell.id));
    }
    let plan = Plan::kept(answer::Window { start: issued.begins, end: issued.ends });
    cell.note(&plan, None);
    Tended { order: order.clone(), plan, renewal_id: issued.renewal_id, begun, error: None }
}

/// Looks after the certificates of one authority for as long as the thread runs.
async fn run(work: Arc<Work>, tended: Vec<Tended>, challenges: Arc<Challenges>) {
    let key = loop {
        match account_key(&work).await {
            Ok(key) => break key,
            Err(why) => {
                let issuer = &work.issuer.name;
                log::global(Level::Error, format_args!("{why} while loading account key, acme issuer: \"{issuer}\""));
                timer::sleep(KEY_PAUSE).await;
            }
        }
    };
    let thumbprint = key.thumbprint().to_owned();
    let known = match &work.directory {
        Some(directory) => directory.account(&work.issuer.uri, &thumbprint),
        None => remembered(&work).url.filter(|(_, of)| *of == thumbprint).map(|(url, _)| url),
    };
    let outside = Outside::new(work.clone(), thumbprint, challenges);
    let mut tending = Tending::new(tended, known);
    loop {
        let locks = match &work.share {
            Some(share) => Some(together::before(share, &work, &mut tending, outside.now()).await),
            None => None,
        };
        let next = tend(&work.issuer, &key, &mut tending, &outside).await;
        if let (Some(share), Some(locks)) = (&work.share, locks) {
            together::after(share, &work, &tending, locks).await;
        }
        for tended in &tending.all {
            if let Some((_, cell)) = work.orders.iter().find(|(order, _)| *order == tended.order) {
                cell.note(&tended.plan, tended.error.as_ref());
            }
        }
        if work.directory.is_none() {
            let url = tending.account.clone().map(|url| (url, outside.thumbprint.clone()));
            work.memory.lock().unwrap_or_else(PoisonError::into_inner).url = url;
        }
        let Some(next) = next else { return };
        timer::sleep(ROUND_MIN).await;
        while outside.now() < next {
            let rest = Duration::from_secs(next.saturating_sub(clock::unix_seconds() as i64).unsigned_abs());
            timer::sleep(rest.min(SLEEP_MAX)).await;
        }
    }
}

fn remembered(work: &Work) -> KeptWork {
    work.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The account's key: of the file, of an earlier process, or a new one.
async fn account_key(work: &Work) -> Result<AccountKey, String> {
    let kind = match &work.key {
        AccountKeySource::File(text) => return AccountKey::read(text),
        AccountKeySource::Own(kind) => *kind,
    };
    let known = match &work.directory {
        Some(directory) => directory.account_key(),
        None => remembered(work).key,
    };
    let shared = shared_key(work, known.clone()).await;
    if let Some(shared) = shared.filter(|shared| Some(shared) != known.as_ref()) {
        keep_key(work, &shared);
        return AccountKey::read(shared.as_bytes());
    }
    if let Some(known) = known {
        return AccountKey::read(known.as_bytes());
    }
    let made = weir_net::aside::run("acme key", move || kind.generate()).await;
    let made = made.map_err(|error| error.to_string())??;
    // If another edge was faster, its key is the key of the account.
    let made = shared_key(work, Some(made.clone())).await.unwrap_or(made);
    keep_key(work, &made);
    AccountKey::read(made.as_bytes())
}

/// The account's key that the edges share; `own` becomes it if there is none yet.
async fn shared_key(work: &Work, own: Option<String>) -> Option<String> {
    let asked = work.share.as_ref()?.account_key(&work.issuer.name, own).await;
    asked.unwrap_or_else(|why| {
        log::global(Level::Warn, format_args!("{why}, acme issuer: \"{}\"", work.issuer.name));
        None
    })
}

/// Keeps the account's key for a later process, or for a later configuration.
fn keep_key(work: &Work, made: &str) {
    match &work.directory {
        Some(directory) => {
            if let Err(error) = directory.keep_account_key(made) {
                let (path, issuer) = (work.path(), &work.issuer.name);
                log::global(
                    Level::Warn,
                    format_args!(
                        "writing the account key in \"{path}\" failed {}, acme issuer: \"{issuer}\"",
                        Os(&error)
                    ),
                );
            }
        }
        None => work.memory.lock().unwrap_or_else(PoisonError::into_inner).key = Some(made.to_owned()),
    }
}
