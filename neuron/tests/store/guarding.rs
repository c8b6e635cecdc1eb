//! The tables refuse change, whoever asks.

use neuron::store::{Options, Sqlite, Store};
use rusqlite::Connection;

use super::{filled, rows};

#[test]
fn every_table_refuses_update_delete_and_replacing_insert() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("guard.db");
    filled(&path);
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let content: (neuron::Digest, std::sync::Arc<[u8]>) = (neuron::Digest::content(b"x"), b"x".as_slice().into());
    let manifest = neuron::store::Manifest {
        hash: content.0,
        bytes: 1,
        chunks: vec![content.0],
    };
    store.put_chunks(vec![content]).unwrap();
    store.put_manifest(&manifest).unwrap();
    let before = rows(&store);
    let shell = Connection::open(&path).unwrap();
    for table in ["topic", "type", "schema", "envelope", "chunk", "manifest"] {
        let column: String = shell
            .query_row("SELECT name FROM pragma_table_info(?1) WHERE cid = 1", [table], |row| {
                row.get(0)
            })
            .unwrap();
        for statement in [
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table}"),
            format!("REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
            format!("INSERT OR IGNORE INTO {table} SELECT * FROM {table}"),
        ] {
            let refusal = shell.execute_batch(&statement).unwrap_err().to_string();
            assert!(refusal.contains("append only"), "{statement}: {refusal}");
        }
    }
    for statement in [
        // A gap in the store, a gap in a topic, and a second batch of one idempotency key.
        "INSERT INTO envelope SELECT 99, topic, 4, type, at, cause, key, idempotency, id, record FROM envelope WHERE pos = 5",
        "INSERT INTO envelope SELECT 7, topic, 9, type, at, cause, key, idempotency, id, record FROM envelope WHERE pos = 5",
        "INSERT INTO envelope SELECT 6, topic, 4, type, at, cause, key, idempotency, id, record FROM envelope WHERE pos = 5",
    ] {
        let refusal = shell.execute_batch(statement).unwrap_err().to_string();
        assert!(refusal.contains("append only"), "{statement}: {refusal}");
    }
    assert_eq!(rows(&store), before);
    store.sound().unwrap();
}
