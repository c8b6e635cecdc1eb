//! What carries ephemeral topics between the buses of one store.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::{fs::MetadataExt as _, net::UnixStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use neuron::{
    Author, Draft, Ledger, Listener, Pattern, RequestId, SystemClock, Topic, limits,
    pipeline::Pipeline,
    store::{Options, Sqlite},
    topic::catalog,
    transport::{Bridge, Local, Transport, conformance},
};
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, any},
    prop_assert, proptest,
};

#[test]
fn the_transport_of_one_process_conforms() {
    conformance::check(|| {
        let local = Local::default();
        Ok(Box::new(move || Ok(Arc::new(local.clone()) as Arc<dyn Transport>)))
    })
    .unwrap();
}

#[test]
fn the_bridge_between_processes_conforms() {
    conformance::check(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        std::fs::write(&path, "").unwrap();
        Ok(Box::new(move || {
            assert!(folder.path().exists());
            Ok(Arc::new(Bridge::beside(&path)) as Arc<dyn Transport>)
        }))
    })
    .unwrap();
}

/// The socket of a bridge that listens, and a ledger behind it.
struct Target {
    _folder: tempfile::TempDir,
    path: PathBuf,
    ledger: Ledger,
    listener: Listener,
}

fn target() -> Target {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    let listener = ledger.bus().listen(Pattern::all());
    Target {
        _folder: folder,
        path,
        ledger,
        listener,
    }
}

impl Target {
    fn socket(&self) -> PathBuf {
        let folder = self.path.with_file_name("store.db.bus");
        let mut sockets = fs::read_dir(folder).unwrap();
        sockets.next().unwrap().unwrap().path()
    }

    /// Sends bytes, and waits until the connection is closed at the other end.
    fn attack(&self, bytes: &[u8], closes_by_itself: bool) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        // It may close before everything is written.
        let _ = stream.write_all(bytes);
        if !closes_by_itself {
            let _ = stream.shutdown(Shutdown::Write);
        }
        match stream.read(&mut [0]) {
            Ok(read) => assert_eq!(read, 0, "it says something"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }

    /// Nothing came of all that, and the bus goes on.
    fn is_unharmed(&mut self) {
        assert_eq!(self.listener.try_next().unwrap(), None);
        let gauge = Draft::new(gauges(), Author::cli(), "gauge").unwrap();
        self.ledger.bus().publish(gauge).unwrap();
        assert!(self.listener.try_next().unwrap().is_some());
    }

    fn hello(&self) -> Vec<u8> {
        let stat = fs::metadata(&self.path).unwrap();
        hello(&format!("{}:{}", stat.dev(), stat.ino()), &"a".repeat(32))
    }
}

fn gauges() -> Topic {
    catalog::stream(&RequestId::new("one").unwrap())
}

fn frame(version: u8, kind: u8, text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len() + 2).unwrap().to_be_bytes();
    [&length[..], &[version, kind], text].concat()
}

fn hello(store: &str, socket: &str) -> Vec<u8> {
    let text = format!(r#"{{"socket":"{socket}","store":"{store}"}}"#);
    frame(1, b'h', text.as_bytes())
}

const RECORD: &str =
    r#"{"at":1,"author":"x","body":{"artifacts":[],"type":"said"},"headers":[],"seq":1,"topic":"TOPIC"}"#;

#[test]
fn the_frames_that_wire_md_describes_are_heard_and_any_other_closes_its_connection_and_nothing_else() {
    let mut target = target();
    let record = |topic: &str| RECORD.replace("TOPIC", topic);
    let good = record("stream.one");
    target.attack(&[target.hello(), frame(1, b'e', good.as_bytes())].concat(), false);
    let heard = futures::executor::block_on(target.listener.next()).unwrap();
    assert_eq!(heard.record().unwrap().as_str(), good);
    target.attack(
        &[
            target.hello(),
            frame(1, b'l', br#"{"others":2,"topics":[["stream.one",3]]}"#),
        ]
        .concat(),
        false,
    );
    assert_eq!(futures::executor::block_on(target.listener.next()).unwrap_err().0, 5);
    let store = "1:1";
    let hostile: Vec<Vec<u8>> = vec![
        hello(store, &"a".repeat(32)),
        frame(2, b'h', b"{}"),
        frame(1, b'e', good.as_bytes()),
        vec![0; 16],
        vec![0xff; 16],
        [target.hello(), target.hello()].concat(),
        [target.hello(), frame(1, b'?', b"{}")].concat(),
        [target.hello(), frame(1, b'e', b"not json")].concat(),
        [target.hello(), frame(1, b'e', &[0xff, 0xfe])].concat(),
        [target.hello(), frame(1, b'e', good.replace(":1", ": 1").as_bytes())].concat(),
        [
            target.hello(),
            frame(1, b'e', good.replace("\"seq\":1", "\"seq\":0").as_bytes()),
        ]
        .concat(),
        [target.hello(), frame(1, b'e', record("$leases").as_bytes())].concat(),
        [target.hello(), frame(1, b'e', record("agent.a.steps").as_bytes())].concat(),
        [target.hello(), frame(1, b'r', record("never.declared").as_bytes())].concat(),
        [target.hello(), frame(1, b'l', br#"{"others":-1,"topics":[]}"#)].concat(),
        [target.hello(), u32::MAX.to_be_bytes().to_vec()].concat(),
    ];
    for bytes in hostile {
        target.attack(&bytes, true);
        target.is_unharmed();
    }
    let stat = fs::metadata(&target.path).unwrap();
    let store = format!("{}:{}", stat.dev(), stat.ino());
    for socket in ["", "../../../etc/passwd", &"A".repeat(32), &"/".repeat(32)] {
        target.attack(&hello(&store, socket), true);
    }
    target.is_unharmed();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_bytes_come_nobody_is_harmed(
        garbage in vec(any::<u8>(), 0..400), greets in any::<bool>(), framed in any::<bool>(), kind in "[herlx]",
        cut in 0_usize..120, flip in any::<(usize, u8)>(),
    ) {
        let mut target = target();
        let mut record = RECORD.replace("TOPIC", "stream.one").into_bytes();
        let place = flip.0 % record.len();
        record[place] ^= flip.1 | 1;
        record.truncate(record.len() - cut % record.len());
        let body = if framed { frame(1, kind.as_bytes()[0], &record) } else { garbage };
        let bytes = if greets { [target.hello(), body].concat() } else { body };
        target.attack(&bytes, false);
        // A changed record may still be one; what is heard is whole.
        while let Some(heard) = target.listener.try_next().unwrap_or(None) {
            prop_assert!(heard.is_intact().unwrap());
        }
        target.is_unharmed();
    }
}

#[test]
fn a_store_with_a_path_too_long_for_a_socket_has_a_bridge_all_the_same_and_its_socket_is_its_users_alone() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(100)).join("y".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let path = deep.join("store.db");
    let open = || {
        let store = Arc::new(Sqlite::open_apart(&path, Options::default()).unwrap());
        let bridge = Arc::new(Bridge::beside(&path));
        Ledger::with_transport(store, Arc::new(SystemClock), Pipeline::default(), bridge).unwrap()
    };
    let (one, other) = (open(), open());
    let mut heard = other.bus().listen(Pattern::exactly(&gauges()));
    let sockets = deep.join("store.db.bus");
    for entry in fs::read_dir(&sockets).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::metadata(&sockets).unwrap().mode() & 0o777, 0o700);
    one.bus()
        .publish(Draft::new(gauges(), Author::cli(), "gauge").unwrap())
        .unwrap();
    assert_eq!(futures::executor::block_on(heard.next()).unwrap().seq, 1);
    drop((one, other, heard));
    assert!(!sockets.exists(), "the last one takes the folder along");
}

#[test]
fn more_connections_than_there_may_be_are_closed_and_those_that_stand_go_on() {
    let mut target = target();
    let socket = target.socket();
    let connect = || UnixStream::connect(&socket).unwrap();
    let held: Vec<UnixStream> = (0..limits::BRIDGE_PEERS_MAX).map(|_| connect()).collect();
    target.attack(&[], true);
    let greeting = [
        target.hello(),
        frame(1, b'e', RECORD.replace("TOPIC", "stream.one").as_bytes()),
    ];
    (&held[0]).write_all(&greeting.concat()).unwrap();
    futures::executor::block_on(target.listener.next()).unwrap();
    drop(held);
    target.is_unharmed();
}
