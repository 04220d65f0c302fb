//! The reports of this edge to the ledger.

use std::sync::Arc;
use std::time::Duration;

use weir_fleet::{Beat, BeatReply};
use weir_net::{clock, timer};
use weir_redis::NoReply;

use crate::fleet::scripts::Script;
use crate::fleet::shared::{FleetShared, PATIENCE};

/// The time between two reports. The ledger counts an edge as away after three of them.
const EVERY: Duration = Duration::from_millis(100);

/// Reports again and again, as long as the thread runs.
pub(super) async fn report(shared: Arc<FleetShared>) {
    let mut script = Script::new(weir_fleet::BEAT);
    loop {
        let began = clock::precise();
        let beat = shared.view().presence.beat(shared.now_ms(began));
        if let Some(beat) = beat {
            let reply = ask(&shared, &mut script, &beat).await;
            let now = shared.now_ms(clock::precise());
            match reply {
                Ok(reply) => {
                    hear(&shared, now, &reply);
                    // A late report was only a look at Redis' clock.
                    if matches!(reply, BeatReply::Late { .. }) && clock::precise() - began < EVERY / 4 {
                        continue;
                    }
                }
                Err(failed) => {
                    shared.view().presence.lose(now, matches!(failed, NoReply::Refused(_)));
                    shared.note_failure(&failed);
                }
            }
        }
        timer::sleep(EVERY.saturating_sub(clock::precise() - began)).await;
    }
}

fn hear(shared: &FleetShared, now_ms: i64, reply: &BeatReply) {
    let mut view = shared.view();
    view.presence.hear(now_ms, reply);
    if let BeatReply::Counted { edges, .. } = reply {
        view.edges = *edges;
        drop(view);
        shared.note_answer();
    }
}

async fn ask(shared: &FleetShared, script: &mut Script, beat: &Beat) -> Result<BeatReply, NoReply> {
    let (keys, settings) = (&shared.keys, &shared.settings);
    let words = [
        String::new(),
        settings.edge.clone(),
        shared.run.clone(),
        beat.not_after_ms.to_string(),
        format!("{:.9}", beat.held),
        format!("{:.9}", beat.part),
        weir_fleet::SILENT_MS.to_string(),
        weir_fleet::FORGET_MS.to_string(),
    ];
    let reply = script.run(&settings.server, &[keys.state(), keys.edges()], &words, PATIENCE).await?;
    let items: Option<Vec<String>> = reply
        .list()
        .iter()
        .map(|item| item.text().map(str::to_owned).or_else(|| Some(item.number()?.to_string())))
        .collect();
    let items = items.ok_or(NoReply::Unexpected)?;
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    BeatReply::read(&items).ok_or(NoReply::Unexpected)
}
