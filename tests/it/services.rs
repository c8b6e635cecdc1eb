//! Real servers, started, stopped, killed and restarted by the tests.

use std::{io::ErrorKind, time::Duration};

use neuron_workspace::{Kind, PATIENCE, Service};

fn check_a_server_through_pause_kill_and_restart(kind: Kind) {
    let mut server = Service::start(kind);
    server.ping(PATIENCE).expect("a running server answers");

    server.pause();
    let stream = server
        .connect(Duration::from_millis(50))
        .expect("the kernel still accepts");
    kind.ask(&stream).expect("the kernel still takes bytes");
    let silent = kind
        .answered(&stream)
        .expect_err("a stopped server answers nothing")
        .kind();
    assert!(
        matches!(silent, ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{silent:?}"
    );
    server.resume();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    kind.answered(&stream).expect("what was asked meanwhile is answered");

    let port = server.port();
    server.kill();
    let refused = server.ping(PATIENCE).expect_err("nobody is there").kind();
    assert_eq!(refused, ErrorKind::ConnectionRefused);
    server.restart();
    assert_eq!(server.port(), port);
    server.ping(PATIENCE).expect("it answers again");
    assert!(server.url().ends_with(&port.to_string()) || server.url().contains(&format!(":{port}/")));
}

#[test]
fn nats_answers_again_after_a_pause_and_after_a_kill() {
    check_a_server_through_pause_kill_and_restart(Kind::Nats);
}

#[test]
fn redis_answers_again_after_a_pause_and_after_a_kill() {
    check_a_server_through_pause_kill_and_restart(Kind::Redis);
}

#[test]
fn postgres_answers_again_after_a_pause_and_after_a_kill() {
    check_a_server_through_pause_kill_and_restart(Kind::Postgres);
}

#[test]
fn redis_and_nats_run_beside_others_of_their_kind() {
    let servers = [Kind::Redis, Kind::Redis, Kind::Nats, Kind::Nats].map(Service::start);
    assert!(servers.iter().all(|server| server.ping(PATIENCE).is_ok()));
}
