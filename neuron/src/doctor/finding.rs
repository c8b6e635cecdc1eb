use serde::Serialize;

use crate::store::verify::Verified;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Worth knowing, and nothing is wrong.
    Note,
    /// Something beside the records is wrong, and can be put right.
    Mendable,
    /// What was recorded is damaged, or cannot be read.
    Damaged,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is there.
    pub what: String,
    /// What can be done, or why nothing need be.
    pub remedy: String,
    /// Whether [`mend`](super::mend()) does that.
    pub by_repair: bool,
}

/// What an examination found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Everything worth telling, the worst first.
    pub findings: Vec<Finding>,
    /// What the store holds, if all of it could be verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

impl Diagnosis {
    /// The worst of all; nothing was found without one.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    pub(super) fn tell(&mut self, severity: Severity, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(severity, what.into(), remedy.into(), false);
    }

    /// Something that `mend` puts right.
    pub(super) fn mendable(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Mendable, what.into(), remedy.into(), true);
    }

    fn add(&mut self, severity: Severity, what: String, remedy: String, by_repair: bool) {
        self.findings.push(Finding {
            severity,
            what,
            remedy,
            by_repair,
        });
    }
}
