use std::{io::BufRead, path::Path};

use data_encoding::BASE64;
use serde::Serialize;

use super::{
    input::{Lines, malformed, numbered},
    line::{ArtifactLine, ChunkLine, EnvelopeLine, Opening, Read, SchemaLine, Trailer, VERSION, Versioned},
};
use crate::{
    Digest, DigestStream, ENVELOPE_CONTEXT, Envelope, Error, ErrorKind, Json, Result, Schema, SchemaRef, limits,
    store::{
        Access, Archive, Manifest, Options, Row, Sqlite, register,
        sqlite::Sealing,
        verify::{self, Bad, Head, Verified},
    },
};

/// What an import made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// What the archive says it holds.
    pub archive: Archive,
    /// What was found in it, when all of it was read again.
    pub verified: Verified,
}

/// Makes a sealed archive of an export: a file that is read as a store is, and to which nothing is appended. Each line is
/// held to what it says, and the whole is verified before the file takes its name. `seen` is told after each line how
/// many bytes were read. Memory holds one line. Blocks.
///
/// ```
/// use neuron::{Error, ErrorKind, store::{Memory, Options, Part, Sqlite, Store as _, export}};
/// # let folder = tempfile::tempdir()?;
/// let mut lines = Vec::new();
/// export::export(&Memory::new()?, &Part::ALL, |line| Ok::<(), Error>(lines.extend_from_slice(line.as_bytes())))?;
/// let archive = folder.path().join("archive.db");
/// export::import(&lines[..], &archive, |_| {})?;
/// assert!(Sqlite::open(&archive, Options::default())?.archive()?.is_some());
/// # Ok::<(), neuron::BoxError>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Malformed`] with the number of the line and what is wrong with it; [`ErrorKind::NotAStore`] for another
/// version or root; [`ErrorKind::TooLarge`] for a line or a value above its bound; [`ErrorKind::Conflict`] if there is a
/// file of that name; a kind of the disk. None of them leaves a file.
pub fn import(read: impl BufRead, to: &Path, mut seen: impl FnMut(u64)) -> Result<Imported, Error> {
    let mut lines = Lines::of(read);
    let opening = match lines.next()?.map(opens) {
        Some(opening) => opening.map_err(|error| lines.at(error))?,
        None => return Err(lines.bad("the file is empty: this is no export")),
    };
    let mut import = Import {
        sealing: Sealing::begin(to)?,
        schemas: 0,
        registry: Digest::stream(),
        last: opening.part.from - 1,
        seal: Head::default(),
        batch: None,
        first: None,
        artifact: None,
        artifacts: (0, 0),
        stage: Stage::Schemas,
        opening,
    };
    loop {
        let (before, number) = (lines.hash.finish(), lines.number + 1);
        let ended = match lines.next()? {
            Some(line) => import.take(line, before, number),
            None => return Err(lines.bad("the file ends here, before its last line: it was cut off")),
        };
        seen(lines.bytes);
        match ended {
            Ok(false) => {}
            Ok(true) => break,
            Err(error) => return Err(lines.at(error)),
        }
    }
    if lines.next()?.is_some() {
        return Err(lines.bad("something stands after the last line of the export"));
    }
    import.finish()
}

fn parsed(line: &str) -> Result<Read<'_>, Error> {
    serde_json::from_str(line).map_err(|error| malformed(format!("it is no line of an export: {error}")))
}

/// What the first line says, if this program can read what follows.
fn opens(line: &str) -> Result<Opening, Error> {
    // Another version may have another form, so that comes first.
    if let Ok(Versioned { export }) = serde_json::from_str(line)
        && export.version != VERSION
    {
        let version = export.version;
        let why =
            format!("this is an export of version {version}, this program reads version {VERSION}: use a newer one");
        return Err(Error::new(ErrorKind::NotAStore, why));
    }
    let Read::Export(opening) = parsed(line)? else {
        return Err(malformed(
            "the first line of an export says what it holds; this file does not begin with one",
        ));
    };
    let own = Schema::plane0().reference();
    if opening.root != own {
        let why = format!(
            "the envelopes have the root {}, this program reads {}",
            opening.root.0, own.0
        );
        return Err(Error::new(ErrorKind::NotAStore, why));
    }
    let part = &opening.part;
    if part.from == 0 || i64::try_from(part.to).is_err() || i64::try_from(part.from).is_err() {
        return Err(malformed("its part is none: places are counted from 1"));
    }
    if opening.head.pos != part.to && part.topics.is_none() {
        return Err(malformed("its head is not that of the last place of its part"));
    }
    Ok(opening)
}

/// What may come next: sections come in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Schemas,
    Envelopes,
    Artifacts,
}

struct Import {
    opening: Opening,
    sealing: Sealing,
    stage: Stage,
    schemas: u64,
    registry: DigestStream,
    /// The `pos` of the last envelope.
    last: u64,
    seal: Head,
    /// The idempotency key that the last envelope stood under.
    batch: Option<String>,
    /// The line of the first envelope.
    first: Option<u64>,
    artifact: Option<Growing>,
    /// How many, and their bytes.
    artifacts: (u64, u64),
}

/// An artifact whose chunks are being read.
struct Growing {
    manifest: Manifest,
    whole: DigestStream,
    bytes: u64,
}

impl Import {
    /// Takes a line; true for the last one.
    fn take(&mut self, line: &str, before: Digest, number: u64) -> Result<bool, Error> {
        match parsed(line)? {
            Read::Export(_) => return Err(malformed("an export begins here, inside another one")),
            Read::Schema(line) => self.enter(Stage::Schemas).and_then(|()| self.schema(&line))?,
            Read::Envelope(line) => {
                self.enter(Stage::Envelopes)?;
                self.first.get_or_insert(number);
                self.envelope(&line)?;
            }
            Read::Artifact(line) => {
                self.enter(Stage::Artifacts)?;
                self.artifact(&line);
            }
            Read::Chunk(line) => self.chunk(&line)?,
            Read::End(trailer) => {
                self.whole()?;
                self.holds(&trailer, before)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn enter(&mut self, stage: Stage) -> Result<(), Error> {
        if stage < self.stage {
            return Err(malformed(
                "it comes too late: schemas come first, then envelopes, then artifacts",
            ));
        }
        self.stage = stage;
        self.whole()
    }

    fn schema(&mut self, line: &SchemaLine<'_>) -> Result<(), Error> {
        let definition = Json::parse(line.definition.get())?;
        let value = definition.to_value();
        let schema = Schema::known(definition, value);
        if schema.reference() != line.hash {
            let why = format!(
                "the definition has the hash {}, not {}",
                schema.reference().0,
                line.hash.0
            );
            return Err(malformed(why));
        }
        let own: SchemaRef = Schema::plane0().reference();
        if (self.schemas == 0) != (line.hash == own) {
            return Err(malformed("the first schema, and it alone, is the form of an envelope"));
        }
        if !self.sealing.schema(&schema)? {
            return Err(malformed(format!("schema {} stands twice", line.hash.0)));
        }
        register(&mut self.registry, &schema);
        self.schemas += 1;
        Ok(())
    }

    fn envelope(&mut self, line: &EnvelopeLine<'_>) -> Result<(), Error> {
        let (pos, part) = (line.pos, &self.opening.part);
        let next = self.last + 1;
        if pos < next || pos > part.to || (part.topics.is_none() && pos != next) {
            let why = format!(
                "pos {pos} does not follow {}: envelopes come in order, each once",
                self.last
            );
            return Err(malformed(why));
        }
        let record = line.record.get();
        if record.len() > limits::RECORD_BYTES_MAX {
            let why = format!(
                "its record has {} bytes, at most {} are allowed",
                record.len(),
                limits::RECORD_BYTES_MAX
            );
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let found = Digest::derive(ENVELOPE_CONTEXT, record.as_bytes());
        if found != line.id {
            return Err(malformed(format!(
                "its record hashes to {found}, not to its id {}",
                line.id
            )));
        }
        if !Json::is_canonical(record)? {
            return Err(malformed("its record is not in canonical form"));
        }
        let envelope = Envelope::from_record(pos, line.id, record).map_err(malformed)?;
        if !part.holds(&envelope.topic) {
            return Err(malformed(format!("topic {} is none that was exported", envelope.topic)));
        }
        let key: Option<String> = envelope.headers.decode("idempotency-key");
        let row = Row {
            pos,
            topic: envelope.topic.clone(),
            seq: envelope.seq,
            kind: envelope.body.kind.clone(),
            at: envelope.at,
            cause: envelope
                .cause()
                .map(|cause| self.sealing.place(&cause))
                .transpose()?
                .flatten(),
            key: envelope.key().map(Into::into),
            idempotency: key.clone().filter(|_| key != self.batch).map(Into::into),
            id: line.id,
            record: record.into(),
        };
        self.sealing.row(&row)?;
        self.batch = key;
        self.last = pos;
        self.seal = self.seal.then(line.id);
        Ok(())
    }

    fn artifact(&mut self, line: &ArtifactLine) {
        self.artifact = Some(Growing {
            manifest: Manifest {
                hash: line.hash,
                bytes: line.bytes,
                chunks: Vec::new(),
            },
            whole: Digest::stream(),
            bytes: 0,
        });
    }

    fn chunk(&mut self, line: &ChunkLine<'_>) -> Result<(), Error> {
        let Some(growing) = &mut self.artifact else {
            return Err(malformed("a chunk comes after the artifact that it is of"));
        };
        let bytes = BASE64
            .decode(line.base64.as_bytes())
            .map_err(|error| malformed(format!("it is no base64: {error}")))?;
        if bytes.len() > limits::CHUNK_BYTES_MAX {
            let why = format!(
                "it has {} bytes, a chunk has at most {}",
                bytes.len(),
                limits::CHUNK_BYTES_MAX
            );
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let found = Digest::content(&bytes);
        if found != line.hash {
            return Err(malformed(format!(
                "its content hashes to {found}, not to {}",
                line.hash
            )));
        }
        growing.whole.update(&bytes);
        growing.bytes += bytes.len() as u64;
        if growing.bytes > growing.manifest.bytes {
            return Err(malformed(format!(
                "the artifact has more than its {} bytes",
                growing.manifest.bytes
            )));
        }
        growing.manifest.chunks.push(line.hash);
        self.sealing.chunk(&line.hash, &bytes)
    }

    /// Ends the artifact whose chunks were being read.
    fn whole(&mut self) -> Result<(), Error> {
        let Some(Growing { manifest, whole, bytes }) = self.artifact.take() else {
            return Ok(());
        };
        let found = whole.finish();
        if (found, bytes) != (manifest.hash, manifest.bytes) {
            let (hash, wanted) = (manifest.hash, manifest.bytes);
            let why = format!(
                "the artifact before it is not whole: its chunks make {bytes} of {wanted} bytes that hash to {found}, not to {hash}"
            );
            return Err(malformed(why));
        }
        if !self.sealing.manifest(&manifest)? {
            return Err(malformed(format!("artifact {} stands twice", manifest.hash)));
        }
        self.artifacts = (self.artifacts.0 + 1, self.artifacts.1 + bytes);
        Ok(())
    }

    fn holds(&self, trailer: &Trailer, before: Digest) -> Result<(), Error> {
        let found = Trailer {
            schemas: self.schemas,
            envelopes: self.seal.pos,
            artifacts: self.artifacts.0,
            artifact_bytes: self.artifacts.1,
            hash: before,
        };
        if self.schemas == 0 {
            return Err(malformed(
                "the form of an envelope, which is its first schema, is missing",
            ));
        }
        if found == *trailer {
            return Ok(());
        }
        let why = if found.hash == trailer.hash {
            format!("it counts other lines than there are: {found:?}")
        } else {
            "the lines before it are not those that were written: some were changed, added or removed".to_owned()
        };
        Err(malformed(why))
    }

    /// Seals the file, reads all of it again, and gives it its name.
    fn finish(self) -> Result<Imported, Error> {
        let Opening { root, head, part, .. } = self.opening;
        let archive = Archive {
            root,
            head,
            part,
            seal: self.seal,
            registry: self.registry.finish(),
        };
        let sealed = self.sealing.seal(&archive)?;
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        let store = Sqlite::open(sealed.path(), reading)?;
        let verified = verify::verify(&store).map_err(|error| located(&store, &error, self.first))?;
        drop(store);
        sealed.finish()?;
        Ok(Imported { archive, verified })
    }
}

/// What is wrong with the whole, by the line that it came from.
fn located(store: &Sqlite, error: &Error, first: Option<u64>) -> Error {
    let found = error.detail::<Bad>().zip(first).and_then(|(bad, first)| {
        let before = store.count_before(bad.pos).ok()?;
        Some(numbered(first + before, malformed(error.to_string())))
    });
    found.unwrap_or_else(|| malformed(error.to_string()).context("what the lines say together is no part of a store"))
}
