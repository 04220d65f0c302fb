//! The server's side of the keeper's channel: gives up root, then puts the keeper's orders into practice.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use weir_conf::Files;
use weir_http::hold::reach::Reach;
use weir_meter::live::Canary;
use weir_net::answers::{self, Answers};
use weir_net::log::{self, Level};
use weir_net::process::{self, Channel, Identity};
use weir_net::worker;

use crate::canary::terms::CanaryServe;
use crate::control::Running;
use crate::drive::quic;
use crate::errands;
use crate::keeper::order::{Order, Report, Serve};
use crate::keeper::passed::{Received, give_logs, received};
use crate::load::{ConfOrigin, Dashboard, load};

/// A server whose keeper has died finishes its exchanges for this time.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the keeper says otherwise, or has ended.
///
/// # Errors
/// A message is none of the keeper's, or root cannot be given up.
pub fn obey(mut origin: ConfOrigin, channel: Channel, files: &dyn Files) -> Result<(), String> {
    let channel = Arc::new(channel);
    let (mut running, mut is_told): (Option<Running>, bool) = (None, false);
    let failed = |error: std::io::Error| format!("the keeper's channel failed {}", log::Os(&error));
    errands::has_keeper(channel.another().map_err(failed)?);
    while let Some((bytes, passed)) = channel.receive().map_err(failed)? {
        let (order, more) = Order::from_bytes(&bytes).ok_or("the keeper's order cannot be read")?;
        match (order, &mut running) {
            (Order::Serve(serve), running) => {
                let answered = Answers::from_bytes(more).ok_or("the keeper's answers cannot be read")?;
                drop(bytes);
                origin.dashboard = Dashboard::Decided(serve.dashboard);
                let report = match put_in_force(running, &origin, files, *serve, passed, answered, &channel) {
                    Ok(()) => Report::Serves,
                    Err(message) => Report::Refuses(message),
                };
                channel.send(&report.to_bytes(), &[]).map_err(failed)?;
                if running.is_none() {
                    return Ok(());
                }
            }
            (_, None) => {}
            (Order::Refuse(why), Some(running)) => running.refuse(why),
            (Order::Reopen(labels), Some(running)) => {
                running.flush();
                drop(give_logs(received(labels, passed).map_err(failed)?.logs));
            }
            (Order::Succeed(is_succeeded), Some(running)) => running.succeed(is_succeeded),
            (Order::Canary(order), Some(running)) => running.steer(order),
            (Order::Quit, Some(running)) => {
                is_told = true;
                finish(running, &channel)?;
            }
            (Order::Stop, Some(_)) => {
                is_told = true;
                break;
            }
        }
    }
    let Some(mut running) = running else { return Ok(()) };
    if !is_told {
        // The keeper has died: nobody may connect any more, and clients that are here get their answers.
        log::global(Level::Alert, format_args!("the keeper has ended: gracefully shutting down"));
        running.quit().wait_for(ORPHAN_PATIENCE);
    }
    running.stop();
    Ok(())
}

/// Lets the exchanges end, and then the loop above.
fn finish(running: &mut Running, channel: &Arc<Channel>) -> Result<(), String> {
    let (left, channel) = (running.quit(), channel.clone());
    let waits = worker::block_aside("quit", move || {
        left.wait();
        channel.close();
    });
    waits.map_err(|error| format!("thread could not be started {}", log::Os(&error)))
}

fn put_in_force(
    running: &mut Option<Running>,
    origin: &ConfOrigin,
    files: &dyn Files,
    serve: Serve,
    passed: Vec<OwnedFd>,
    answered: Answers,
    channel: &Arc<Channel>,
) -> Result<(), String> {
    if running.is_none() {
        give_up_root(serve.user.as_ref().map(Identity::from).as_ref())?;
    }
    let received = received(serve.labels, passed);
    let Received { resources, logs, ways } =
        received.map_err(|error| format!("a passed socket failed {}", log::Os(&error)))?;
    if let Some(process) = serve.quic {
        quic::process::join(process, ways);
    }
    let canary = serve.canary;
    let of_canary = canary.as_ref().map(|canary| ConfOrigin { file: canary.file().to_owned(), ..origin.clone() });
    answers::replayed(answered, || {
        let loaded = load(of_canary.as_ref().unwrap_or(origin), files, serve.generation);
        let Some(conf) = loaded.conf else {
            let all: Vec<String> = loaded.problems.iter().map(|problem| problem.sentence(&loaded.tree)).collect();
            return Err(format!("the server reads the configuration otherwise than its keeper: {}", all.join("; ")));
        };
        let _open = give_logs(logs);
        if let Some(running) = running {
            let Some(CanaryServe::Beside(_, terms)) = canary else {
                return running.replace(conf, &loaded.tree, resources, canary.is_some());
            };
            let channel = channel.clone();
            // The main thread sees that the keeper has ended.
            let tell =
                move |state: &Canary| drop(channel.send(&Report::Canary(Box::new(state.clone())).to_bytes(), &[]));
            return running.split(conf, terms, Box::new(tell));
        }
        restrict_files(&conf.reach);
        let begun = Running::start(conf, &loaded.tree, resources)?;
        let (wait, channel) = (Duration::from_millis(serve.ask_every_ms), channel.clone());
        let watched = begun.watch(wait, move |silent| {
            // The main thread sees that the keeper has ended.
            let _ = channel.send(&Report::Silent(silent).to_bytes(), &[]);
        });
        watched.map_err(|error| format!("thread could not be started {}", log::Os(&error)))?;
        log::leave_terminal();
        *running = Some(begun);
        Ok(())
    })
}

/// From now on, this process opens only files that the configuration names.
fn restrict_files(reach: &Reach) {
    if let Err(error) = process::restrict_files(reach.reads(), reach.writes()) {
        log::global(Level::Notice, format_args!("the server is not restricted in its files: {error}"));
    }
}

/// Makes this process the user of the workers, for good.
fn give_up_root(identity: Option<&Identity>) -> Result<(), String> {
    process::confine(identity).map_err(|error| {
        let uid = identity.map_or_else(process::effective_user, |identity| identity.uid);
        let message = format!("setuid({uid}) failed {}", log::Os(&error));
        log::global(Level::Emerg, format_args!("{message}"));
        message
    })?;
    if let Err(error) = process::restrict_calls() {
        log::global(Level::Warn, format_args!("the server is not restricted in its system calls: {error}"));
    }
    Ok(())
}
