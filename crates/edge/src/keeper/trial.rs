//! The keeper's part of a canary: reads the second configuration, lets the server put it beside the first one, and promotes it.

use std::sync::Arc;

use weir_conf::Files;
use weir_meter::live::{CanaryPhase, CanaryReason};
use weir_net::answers::{self, Answers};
use weir_net::log::{self, Level};

use super::canary::{CanaryAsk, take};
use super::{CanaryNews, Keeper, KeptServer, Load, ask_every, load_recorded, open};
use crate::canary::beside;
use crate::canary::terms::{CanaryOrder, CanaryServe, Terms};
use crate::load::{ConfOrigin, Dashboard, Loaded, identity, is_grave, load, read_tree, worker_count};

impl<S: KeptServer> Keeper<S> {
    /// A reload, or an order about a canary.
    pub(super) fn hang_up(&mut self, files: &dyn Files) {
        let Some(asked) = take(&self.in_force.pid) else { return self.reload(files) };
        let answer = match asked.what {
            CanaryAsk::Start(terms) => self.start_canary(terms, files),
            CanaryAsk::Order(_) if !self.canary.is_on() => Err("no canary runs".to_owned()),
            CanaryAsk::Order(order) => {
                self.server.steer(order);
                Ok(())
            }
        };
        if let Err(why) = &answer {
            log::global(Level::Emerg, format_args!("canary: {why}"));
        }
        self.canary.answer(asked.number, answer, &self.in_force.pid);
    }

    /// Reads a second configuration, and lets the server put it beside the one in force.
    fn start_canary(&mut self, terms: Terms, files: &dyn Files) -> Result<(), String> {
        terms.check()?;
        if self.canary.is_on() {
            return Err("another canary runs: roll it back or promote it first".to_owned());
        }
        if self.successor.is_some() {
            return Err("a new binary serves too: tell the old one to quit first".to_owned());
        }
        let (origin, loaded, mut answers) = self.read_second(&terms, files)?;
        let sentences: Vec<String> =
            loaded.problems.iter().filter(|problem| is_grave(problem)).map(|one| one.sentence(&loaded.tree)).collect();
        let Some(conf) = loaded.conf else { return Err(sentences.join("; ")) };
        if worker_count(&conf) != self.in_force.workers {
            return Err(
                "a canary runs in the same workers: \"worker_processes\" differs; change it with a reload".to_owned()
            );
        }
        terms.pair().map_or(Ok(()), |pair| pair.check(&conf))?;
        beside::same_addresses(&conf, &self.in_force.resources)?;
        let identity = identity(&conf)?;
        let resources = open(&conf, &self.in_force.resources, identity.as_ref(), &mut answers)?;
        let (ask_every, state) = (ask_every(self.manager), terms.state(conf.generation));
        let canary = Some(CanaryServe::Beside(origin.file.clone(), terms));
        let (read, answers) = ((origin, answers.clone()), Arc::new(answers));
        self.server.serve(Load { conf, tree: loaded.tree, answers, resources, identity, ask_every, canary })?;
        self.newest = state.generation;
        self.canary.begin(read, state);
        Ok(())
    }

    /// Reads the file of the terms; or the text in force, whatever the files say now, with the names of two upstreams
    /// exchanged.
    fn read_second(&self, terms: &Terms, files: &dyn Files) -> Result<(ConfOrigin, Loaded, Answers), String> {
        let (dashboard, number) = (Dashboard::Decided(self.in_force.dashboard), self.newest + 1);
        let Some(pair) = terms.pair() else {
            let origin = ConfOrigin { file: terms.file.clone(), dashboard, ..self.origin.clone() };
            let (loaded, answers) = load_recorded(&origin, files, number);
            return Ok((origin, loaded, answers));
        };
        let origin = ConfOrigin { file: self.in_force.file.clone(), dashboard, ..self.origin.clone() };
        let mut answers = Answers::clone(&self.in_force.answers);
        let (tree, _) = answers::replayed(answers.clone(), || read_tree(&origin, files));
        for (name, bytes) in pair.exchanged(&tree)? {
            answers.set_file(&name, bytes);
        }
        let loaded = answers::replayed(answers.clone(), || load(&origin, files, number));
        Ok((origin, loaded, answers))
    }

    /// Keeps the state of the canary, and promotes it if its judge or a user says so.
    pub(super) fn hear_canary(&mut self, files: &dyn Files) {
        let pid = &self.in_force.pid;
        let state = match self.server.canary() {
            CanaryNews::None => return,
            CanaryNews::Died => return self.canary.end(CanaryPhase::RolledBack, CanaryReason::Died, pid),
            CanaryNews::State(state) => state,
        };
        let promotes = state.phase == CanaryPhase::Promoting;
        self.canary.hear(*state, pid);
        if !promotes {
            return;
        }
        let Some((origin, answers)) = self.canary.read.take() else { return };
        let loaded = answers::replayed(answers.clone(), || load(&origin, files, self.newest + 1));
        let serve = CanaryServe::Instead(origin.file);
        let promoted = match loaded.conf {
            Some(conf) => self.replace((conf, loaded.tree, answers), None, Some(serve)),
            None => Err("the configuration reads otherwise than before".to_owned()),
        };
        if let Err(why) = promoted {
            log::global(Level::Emerg, format_args!("canary: {why}"));
            self.server.steer(CanaryOrder::Refused);
            self.canary.end(CanaryPhase::RolledBack, CanaryReason::Refused, &self.in_force.pid);
        }
    }
}
