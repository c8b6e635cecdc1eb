use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
};

use orchestrator::prelude::*;

/// What was done to the world: a file that is only ever added to, a line at a time.
pub(crate) struct Marks(PathBuf);

impl Marks {
    pub(crate) fn beside(store: &str) -> Self {
        Self(format!("{store}.marks").into())
    }

    fn all(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }
}

/// Does something that no crash takes back: `step`, and the call that it was done for.
pub(crate) fn mark(cx: &Cx, step: &str) -> Result<()> {
    let line = format!("{step} {}\n", cx.idempotency_key());
    let path = &cx.state::<Marks>()?.0;
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    // One write, so that a line stands whole or not at all.
    Ok(file.write_all(line.as_bytes())?)
}

/// Whether it was done for this call.
pub(crate) fn is_marked(cx: &Cx, step: &str) -> Result<bool> {
    let line = format!("{step} {}", cx.idempotency_key());
    Ok(cx.state::<Marks>()?.all().lines().any(|done| done == line))
}
