//! Tests running out of descriptors. It is alone in its process, because it lowers the limit of the process.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::File;
use weir_net::{Listener, process, worker};

#[test]
fn accept_without_a_descriptor_left_loses_no_connection() {
    process::set_nofile(64).unwrap();
    worker::block_on(async {
        let listening = common::bind();
        let listener = Listener::new(&listening).unwrap();
        let _clients = [common::dial(&listening), common::dial(&listening)];
        let mut hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        for _ in 0..3 {
            let error = listener.accept().await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(24), "EMFILE");
        }
        hoard.truncate(hoard.len() - 2);
        // No new connection arrives, so only kept readiness can deliver these.
        listener.accept().await.unwrap();
        listener.accept().await.unwrap();
    })
    .unwrap();
}
