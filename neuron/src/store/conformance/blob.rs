use std::sync::Arc;

use super::fixture::{Case, Fixture, draft, refused, same, topic, wrong};
use crate::{
    Append, Clock as _, Digest, Error, ErrorKind, Expectation, Json, Result, Schema, SchemaRef,
    store::{Batch, Manifest},
};

pub(super) const CASES: &[Case] = &[
    (
        "plane 0 is the first schema, others follow in the order of their first append",
        schemas,
    ),
    ("a refused batch registers no schema", refused_schema),
    ("chunks and manifests are stored once and read back", artifacts),
    ("a manifest without its chunks is refused", missing),
];

fn schema(title: &str) -> Result<Arc<Schema>, Error> {
    let definition = Json::parse(&format!(r#"{{"type":"object","required":["{title}"]}}"#))?;
    Schema::new(definition).map(Arc::new)
}

fn with(f: &Fixture, append: Append, schemas: Vec<Arc<Schema>>) -> Result<Batch, Error> {
    append.prepare(schemas, f.setup.clock.now())
}

fn schemas(f: &Fixture) -> Result<(), Error> {
    let (b, a) = (schema("b")?, schema("a")?);
    for schemas in [vec![b.clone(), a.clone()], vec![a.clone()]] {
        let append = Append::of([draft("log", "x", "1")?]);
        f.store.append_blocking(with(f, append, schemas)?)?;
    }
    let found: Vec<SchemaRef> = f.store.schemas()?.iter().map(|schema| schema.reference()).collect();
    let wanted = [Schema::plane0().reference(), b.reference(), a.reference()];
    same("order", &found, &wanted.to_vec())?;
    let found = f
        .store
        .schema(&a.reference())?
        .ok_or_else(|| wrong("it is not found"))?;
    same("definition", &found.definition().as_str(), &a.definition().as_str())?;
    same("unknown", &f.store.schema(&schema("c")?.reference())?.is_none(), &true)
}

fn refused_schema(f: &Fixture) -> Result<(), Error> {
    let append = Append::of([draft("log", "x", "1")?]).expect(Expectation::Head(topic("log")?, 3));
    let batch = with(f, append, vec![schema("a")?])?;
    refused(f.store.append_blocking(batch), ErrorKind::Conflict)?;
    let append = Append::of([draft("log", "x", "1")?]);
    f.setup.fault.arm();
    let batch = with(f, append, vec![schema("a")?])?;
    refused(f.store.append_blocking(batch), ErrorKind::Full)?;
    same("schemas", &f.store.schemas()?.len(), &1)
}

fn artifacts(f: &Fixture) -> Result<(), Error> {
    let chunks: Vec<Arc<[u8]>> = vec![b"one".as_slice().into(), b"".as_slice().into(), vec![7; 100_000].into()];
    let hashes: Vec<Digest> = chunks.iter().map(|chunk| Digest::content(chunk)).collect();
    let manifest = Manifest {
        hash: Digest::content(&chunks.concat()),
        bytes: 100_003,
        chunks: vec![hashes[0], hashes[2]],
    };
    for _ in 0..2 {
        f.store
            .put_chunks(hashes.iter().copied().zip(chunks.iter().cloned()).collect())?;
        f.store.put_manifest(&manifest)?;
    }
    same("manifest", &f.store.manifest(&manifest.hash)?, &Some(manifest.clone()))?;
    same("manifests", &f.store.manifests()?, &vec![(manifest.hash, 100_003)])?;
    for (hash, chunk) in hashes.iter().zip(&chunks) {
        same("chunk", &f.store.chunk(hash)?.as_ref(), &Some(chunk))?;
    }
    let unknown = Digest::content(b"unknown");
    same(
        "unknown",
        &(f.store.manifest(&unknown)?, f.store.chunk(&unknown)?),
        &(None, None),
    )?;
    f.store.put_chunks(Vec::new())
}

fn missing(f: &Fixture) -> Result<(), Error> {
    let manifest = Manifest {
        hash: Digest::content(b"whole"),
        bytes: 5,
        chunks: vec![Digest::content(b"whole")],
    };
    refused(f.store.put_manifest(&manifest), ErrorKind::NotFound)?;
    same("manifest", &f.store.manifest(&manifest.hash)?, &None)
}
