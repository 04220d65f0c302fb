//! The laws of lanes: several configurations on one worker.

use weir_net::Transport;

use super::*;
use crate::exchange::{Exchange, lane};
use crate::hold::split::SplitKey;
use crate::tests::{Site, finish, on_worker, shown, whole};

/// A configuration of this number, in which every request gets this text.
fn conf(number: u32, main: &str, text: &str) -> Arc<Conf> {
    let text = format!(
        "error_log stderr emerg; {main} events {{ worker_connections 9; }} \
         http {{ server {{ listen 127.0.0.1:1; return 200 {text}; }} }}"
    );
    let (conf, problems) = crate::of_text(&text);
    assert_eq!(problems, [""; 0], "{text}");
    Arc::new(Conf { generation: number, ..conf.unwrap() })
}

/// A worker with a configuration in force.
fn worker(conf: &Arc<Conf>) -> Rc<Worker> {
    Worker::new(0, conf.clone(), Default::default(), Default::default(), Default::default(), 1)
}

/// A configuration that the worker has beside the one in force.
fn beside(worker: &Worker, conf: &Arc<Conf>) -> Rc<Generation> {
    Rc::new(Generation::new(conf.clone(), worker.seat, worker.all_counters.clone()))
}

/// A client's connection that has a place in the worker's table, and its other end.
fn client(worker: &Rc<Worker>, generation: &Generation) -> (Entry, std::os::fd::OwnedFd) {
    let (stream, other) = Stream::with_nobody().unwrap();
    let place = worker.take_place_of_client().unwrap();
    (worker.enlist(Transport::from(stream), place, generation), other)
}

/// The status and the text of an exchange's answer.
fn answer(exchange: &mut Exchange<'_>) -> String {
    let outcome = finish(exchange);
    shown(exchange, &outcome).outcome
}

#[test]
fn an_exchange_ends_with_the_lane_it_began_with() {
    on_worker(async {
        let confs = [conf(1, "", "main"), conf(2, "", "beside"), conf(3, "", "next")];
        let worker = worker(&confs[0]);
        let (main, beside) = (worker.lane(|| None), beside(&worker, &confs[1]));
        beside.own.of(|| Cell::new(7));
        let (site, other) = (Site::on(&worker, main), Site::on(&worker, beside.clone()));
        let mut first = site.exchange(&whole("GET /"));
        let mut second = other.exchange(&whole("GET /"));
        let holders = || [0, 1, 2].map(|at: usize| confs[at].holders.load(Ordering::Relaxed));
        assert_eq!(holders(), [1, 1, 0]);
        worker.adopt(confs[2].clone());
        assert_eq!(holders(), [1, 1, 1], "exchanges under way keep a configuration that was replaced");
        assert_eq!((answer(&mut first).as_str(), answer(&mut second).as_str()), ("200 main", "200 beside"));
        let next = Site::on(&worker, worker.lane(|| None));
        assert_eq!(answer(&mut next.exchange(&whole("GET /"))), "200 next");
        drop(first);
        drop(site);
        assert_eq!(holders(), [0, 1, 1], "the last exchange ends it, and it alone");
        assert_eq!(beside.own.of(|| Cell::new(0)).get(), 7, "another lane keeps its values");
    });
}

#[test]
fn work_of_a_configuration_goes_on_while_it_is_in_force_and_the_worker_serves() {
    on_worker(async {
        let confs = [conf(1, "", "a"), conf(2, "", "b")];
        let worker = worker(&confs[0]);
        let (main, beside) = (worker.main(), beside(&worker, &confs[0]));
        let goes_on = |all: [&Rc<Generation>; 2]| all.map(|generation| worker.goes_on(generation));
        assert_eq!(goes_on([&main, &beside]), [true, false], "not by number: each asks for itself");
        let next = worker.adopt(confs[1].clone());
        assert_eq!(goes_on([&main, &next]), [false, true]);
        worker.drain(true);
        assert_eq!(goes_on([&main, &next]), [false, false]);
        assert_eq!(worker.in_force().map(|own| own.conf.generation).collect::<Vec<_>>(), [2], "clients are served on");
    });
}

#[test]
fn replacing_a_configuration_touches_nothing_of_the_worker() {
    on_worker(async {
        let worker = worker(&conf(1, "", "a"));
        worker.own.of(|| Cell::new(7));
        let main = worker.lane(|| None);
        let (entry, _other) = client(&worker, &main);
        let begun = (worker.open_connections(), worker.places_taken(), worker.next_connection_number());
        let board = worker.board.clone();
        worker.adopt(conf(2, "", "b"));
        let number = worker.next_connection_number();
        assert_eq!((worker.open_connections(), worker.places_taken()), (begun.0, begun.1));
        assert!(Arc::ptr_eq(&board, &worker.board) && number > begun.2, "counts go on");
        assert_eq!(worker.own.of(|| Cell::new(0)).get(), 7);
        assert!(!entry.shared.has_ended() && entry.shared.generation.get() == 1, "until its next request");
        drop(entry);
        assert_eq!((worker.open_connections(), worker.places_taken()), (0, 0));
    });
}

#[test]
fn connections_of_a_replaced_configuration_end_in_time_and_no_others() {
    on_worker(async {
        let worker = worker(&conf(1, "", "a"));
        let (old, _a) = client(&worker, &worker.lane(|| None));
        worker.adopt(conf(2, "worker_shutdown_timeout 20ms;", "b"));
        let (new, _b) = client(&worker, &worker.lane(|| None));
        assert!(!old.shared.has_ended());
        while !old.shared.has_ended() {
            timer::sleep(Duration::from_millis(5)).await;
        }
        assert!(!new.shared.has_ended());
    });
}

/// The coin of a share.
fn coin(key: &str, share: f64) -> Arc<Coin> {
    Arc::new(Coin::new([3; 16], SplitKey::read(key).unwrap(), share))
}

#[test]
fn a_split_gives_a_share_of_the_clients_another_configuration_until_it_ends() {
    on_worker(async {
        let worker = worker(&conf(1, "", "a"));
        let coin = coin("address", 0.25);
        let beside = worker.split(conf(2, "", "b"), coin.clone());
        let numbers = |worker: &Worker| {
            let all = (0..2_000u32).map(|number| Some(IpAddr::from(number.to_be_bytes())));
            all.map(|ip| worker.lane(|| ip).conf.generation).collect::<Vec<_>>()
        };
        let first = numbers(&worker);
        let count = |all: &[u32]| all.iter().filter(|number| **number == 2).count();
        assert!((430..570).contains(&count(&first)), "{}", count(&first));
        assert_eq!(first, numbers(&worker), "a client keeps its configuration");
        assert_eq!(worker.lane(|| None).conf.generation, 1, "nobody knows the client");
        assert_eq!(worker.in_force().map(|own| own.conf.generation).collect::<Vec<_>>(), [1, 2]);
        assert!(worker.goes_on(&beside) && worker.is_beside(&beside));
        coin.set_share(0.0);
        assert_eq!(count(&numbers(&worker)), 0);
        coin.set_share(1.0);
        worker.join(2);
        assert_eq!(count(&numbers(&worker)), 0);
        assert!(!worker.goes_on(&beside) && !worker.is_split());
        worker.split(conf(3, "", "c"), coin);
        worker.adopt(conf(4, "", "d"));
        assert_eq!(numbers(&worker), [4; 2_000], "a reload ends a split");
    });
}

#[test]
fn a_request_chooses_its_lane_by_a_cookie_a_field_or_an_argument() {
    on_worker(async {
        let worker = worker(&conf(1, "", "a"));
        for (key, request) in [
            ("cookie:sid", "GET /|Cookie: a=b; sid=7"),
            ("$http_x_user", "GET /|X-User: 7"),
            ("$arg_id", "GET /?a=b&id=7"),
        ] {
            let beside = worker.split(conf(2, "", "b"), coin(key, 1.0));
            let (main, site) = (worker.lane(|| None), Site::on(&worker, worker.main()));
            assert_eq!(main.conf.generation, 1, "the head is not read yet");
            let chosen = |request: &str, first: &Rc<Generation>| {
                let exchange = site.exchange(&whole(request));
                let chosen = lane::of_request(&worker, exchange.client, exchange.request, first);
                chosen.map(|generation| generation.conf.generation)
            };
            assert_eq!(chosen(request, &main), Some(2), "{key}");
            assert_eq!(chosen(request, &beside), None, "{key}");
            assert_eq!(chosen("GET /?idx=7|Cookie: sidx=7", &main), None, "{key}: it has no key");
            assert_eq!(chosen("GET /?id=|Cookie: sid=", &beside), Some(1), "{key}: its key is empty");
            worker.join(2);
        }
    });
}

#[test]
fn a_request_keeps_its_number_for_one_coin() {
    on_worker(async {
        let worker = worker(&conf(1, "", "a"));
        let site = Site::on(&worker, worker.main());
        let one = coin("cookie:sid", 0.5);
        let other = Coin::new([4; 16], one.key().clone(), 0.5);
        let exchange = site.exchange(&whole("GET /|Cookie: sid=7"));
        let number = |coin| lane::number(coin, exchange.client, exchange.request);
        let first = number(&one);
        assert!(first.is_some() && number(&one) == first);
        assert!(number(&other).is_some_and(|number| Some(number) != first), "another coin");
        assert_eq!(number(&one), first);
        exchange.request.clear();
        assert_eq!(lane::number(&one, exchange.client, exchange.request), None, "the next request has no cookie");
    });
}

#[test]
fn connections_of_a_split_that_ended_end_in_time_and_no_others() {
    on_worker(async {
        let worker = worker(&conf(1, "worker_shutdown_timeout 20ms;", "a"));
        let (main, _a) = client(&worker, &worker.main());
        let (beside, _b) = client(&worker, &worker.split(conf(2, "", "b"), coin("address", 0.5)));
        timer::sleep(Duration::from_millis(50)).await;
        assert!(!main.shared.has_ended() && !beside.shared.has_ended(), "both are in force");
        worker.join(2);
        while !beside.shared.has_ended() {
            timer::sleep(Duration::from_millis(5)).await;
        }
        assert!(!main.shared.has_ended());
    });
}

#[test]
fn the_table_follows_the_configuration_of_the_process() {
    on_worker(async {
        let small = |number| {
            let text = "events { worker_connections 3; } http { server { listen 127.0.0.1:1; } }";
            let (conf, _) = crate::of_text(text);
            Arc::new(Conf { generation: number, ..conf.unwrap() })
        };
        let worker = worker(&conf(1, "", "a"));
        let _beside = beside(&worker, &small(2));
        let places: Vec<_> = (0..9).map_while(|_| worker.try_place()).collect();
        assert_eq!(places.len(), 7, "not those of another lane");
        drop(places);
        worker.adopt(small(3));
        let places: Vec<_> = (0..9).map_while(|_| worker.try_place()).collect();
        assert_eq!(places.len(), 1);
    });
}
