use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Ledger;
use crate::{
    Artifact, Author, Digest, Draft, Envelope, Error, ErrorKind, Fold, Receipt, Result, limits,
    store::{Manifest, Select, Store},
    topic::catalog,
    vocabulary::Message,
};

/// Payload of `artifact.superseded`; what it supersedes (kind `superseded`) and the new one (kind `head`) ride as
/// artifacts of the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSuperseded {
    /// Why.
    pub reason: String,
}

impl Message for ArtifactSuperseded {
    const TYPE: &'static str = "artifact.superseded";
}

/// Payload of `artifact.settled`; the family (kind `member`) and its one head (kind `head`) ride as artifacts of the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSettled {
    /// Why this one.
    pub reason: String,
}

impl Message for ArtifactSettled {
    const TYPE: &'static str = "artifact.settled";
}

/// How artifacts came of one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// From each artifact to those that supersede it.
    pub successors: BTreeMap<Digest, BTreeSet<Digest>>,
    /// Artifacts that a settlement has put aside in favour of another; they stay readable.
    pub settled: BTreeSet<Digest>,
}

/// Folds `$artifacts` into a [`Lineage`].
#[derive(Clone, Copy, Debug, Default)]
struct Evolution;

impl Fold for Evolution {
    type State = Lineage;

    fn init(&self) -> Lineage {
        Lineage::default()
    }

    fn apply(&self, state: &mut Lineage, envelope: &Envelope) -> Result<(), Error> {
        let of = |kind: &str| {
            let artifacts = envelope
                .body
                .artifacts
                .iter()
                .filter(move |artifact| artifact.kind.as_deref() == Some(kind));
            artifacts.filter_map(|artifact| artifact.hash).collect::<Vec<_>>()
        };
        let heads = of("head");
        match envelope.body.kind.as_str() {
            ArtifactSuperseded::TYPE => {
                for old in of("superseded") {
                    state.successors.entry(old).or_default().extend(&heads);
                }
            }
            ArtifactSettled::TYPE => {
                state.settled.extend(of("member"));
                state.settled.retain(|member| !heads.contains(member));
            }
            _ => {}
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(catalog::artifacts())
    }
}

impl Lineage {
    /// Everything that is connected with an artifact by supersession, itself included.
    pub fn family(&self, of: &Digest) -> BTreeSet<Digest> {
        let mut family = BTreeSet::from([*of]);
        let mut waiting = vec![*of];
        while let Some(member) = waiting.pop() {
            let after = self.successors.get(&member).into_iter().flatten();
            let before = self
                .successors
                .iter()
                .filter(|(_, after)| after.contains(&member))
                .map(|(old, _)| old);
            waiting.extend(after.chain(before).filter(|near| family.insert(**near)));
        }
        family
    }

    /// The current ones of a family: neither superseded nor put aside. More than one is a fork that nobody has settled.
    pub fn heads(&self, of: &Digest) -> BTreeSet<Digest> {
        let family = self.family(of).into_iter();
        family
            .filter(|member| !self.successors.contains_key(member) && !self.settled.contains(member))
            .collect()
    }
}

impl Ledger {
    /// Stores a blob, chunk by chunk, and gives its hash; content that is there already is not stored twice. Blocks.
    ///
    /// # Errors
    /// What the reader says, or a kind of the disk.
    pub fn store_blob(&self, mut content: impl Read) -> Result<Digest, Error> {
        let mut whole = blake3::Hasher::new();
        let (mut bytes, mut hashes, mut slice, mut held) = (0, Vec::new(), Vec::new(), 0);
        loop {
            let mut chunk = Vec::with_capacity(limits::CHUNK_BYTES_MAX);
            let read = (&mut content)
                .take(limits::CHUNK_BYTES_MAX as u64)
                .read_to_end(&mut chunk)?;
            if read == 0 {
                break;
            }
            whole.update(&chunk);
            bytes += read as u64;
            held += read;
            let hash = Digest::content(&chunk);
            hashes.push(hash);
            slice.push((hash, Arc::from(chunk)));
            if held + limits::CHUNK_BYTES_MAX > limits::ARTIFACT_SLICE_BYTES_MAX {
                self.0.store.put_chunks(std::mem::take(&mut slice))?;
                held = 0;
            }
        }
        if !slice.is_empty() {
            self.0.store.put_chunks(slice)?;
        }
        let hash = Digest::from(*whole.finalize().as_bytes());
        self.0.store.put_manifest(&Manifest {
            hash,
            bytes,
            chunks: hashes,
        })?;
        Ok(hash)
    }

    /// Reads a blob, streaming.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if this store does not hold it.
    pub fn blob(&self, hash: &Digest) -> Result<ArtifactReader, Error> {
        let manifest = self.0.store.manifest(hash)?;
        let manifest =
            manifest.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("artifact {hash} is not in this store")))?;
        Ok(ArtifactReader {
            store: self.0.store.clone(),
            manifest,
            next: 0,
            chunk: io::Cursor::new(Arc::from([])),
        })
    }

    /// Records that `new` supersedes `old`. Several successors of one artifact are a fork, which is legal.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if this store does not hold one of them; else as [`Ledger::append`].
    pub async fn supersede(&self, old: &Digest, new: &Digest, reason: &str, author: &Author) -> Result<Receipt, Error> {
        self.held(&[*old, *new])?;
        let message = ArtifactSuperseded { reason: reason.into() };
        let draft = Draft::message(catalog::artifacts(), author.clone(), &message)?;
        self.publish(
            draft
                .artifact(evidence("superseded", old))
                .artifact(evidence("head", new)),
        )
        .await
    }

    /// Settles a family: `head` is the one that counts from now on, every other member stays readable.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if `head` is no member; else as [`Ledger::supersede`].
    pub async fn settle(&self, head: &Digest, reason: &str, author: &Author) -> Result<Receipt, Error> {
        self.held(&[*head])?;
        let lineage = self.lineage()?;
        let message = ArtifactSettled { reason: reason.into() };
        let mut draft =
            Draft::message(catalog::artifacts(), author.clone(), &message)?.artifact(evidence("head", head));
        for member in lineage.family(head).iter().filter(|member| *member != head) {
            draft = draft.artifact(evidence("member", member));
        }
        self.publish(draft).await
    }

    /// How the artifacts of this store came of one another. Blocks.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn lineage(&self) -> Result<Lineage, Error> {
        self.fold(&Evolution, None).map(|folded| folded.state)
    }

    fn held(&self, hashes: &[Digest]) -> Result<(), Error> {
        for hash in hashes {
            if self.0.store.manifest(hash)?.is_none() {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("artifact {hash} is not in this store: store it first"),
                ));
            }
        }
        Ok(())
    }
}

fn evidence(kind: &str, hash: &Digest) -> Artifact {
    Artifact {
        name: kind.into(),
        hash: Some(*hash),
        kind: Some(kind.into()),
    }
}

/// Reads an artifact chunk by chunk; memory holds one chunk.
#[derive(Debug)]
pub struct ArtifactReader {
    store: Arc<dyn Store>,
    manifest: Manifest,
    next: usize,
    chunk: io::Cursor<Arc<[u8]>>,
}

impl ArtifactReader {
    /// Length of the whole content in bytes.
    pub fn bytes(&self) -> u64 {
        self.manifest.bytes
    }
}

impl Read for ArtifactReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(into)?;
            let Some(hash) = self
                .manifest
                .chunks
                .get(self.next)
                .filter(|_| read == 0 && !into.is_empty())
            else {
                return Ok(read);
            };
            let chunk = self.store.chunk(hash).map_err(io::Error::other)?;
            let missing = || io::Error::other(format!("chunk {hash} of artifact {} is missing", self.manifest.hash));
            self.chunk = io::Cursor::new(chunk.ok_or_else(missing)?);
            self.next += 1;
        }
    }
}
