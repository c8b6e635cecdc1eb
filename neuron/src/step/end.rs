use super::{
    execute::Execution,
    halt::{Halt, Next},
};
use crate::{
    Error, Json, Result,
    def::Ran,
    scope::{Burn, Recorded, Then, by_size},
    vocabulary::step::{Resolved, StepCompleted, StepFailed},
};

impl Execution {
    pub(super) async fn complete(
        &mut self,
        output: Json,
        ran: Option<Ran>,
        resolved: Option<Resolved>,
    ) -> Result<(), Halt> {
        self.leave_open();
        let (inline, large) = by_size("output", output.clone());
        let schema = self.entry.form().output_schema();
        let completed = StepCompleted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: self.entry.meta().name.into(),
            attempt: self.attempt,
            output: inline,
            output_schema: Some(schema),
            resolved,
        };
        let mut record = self.record(&completed)?.large(large);
        record.burn = Some(self.burnt());
        let (home, key, name) = (self.home.clone(), self.key.clone(), self.entry.meta().name);
        let hand_over: Then = Box::new(move |place| {
            let mut answer = Recorded::new(place, Ok(output));
            answer.schema = Some(schema);
            answer.typed = ran.map(|ran| ran.typed);
            home.runtime().unsettled.settled(&key);
            home.answered(&key, name, answer);
        });
        self.home.runtime().journal.append(record, hand_over).await?;
        Ok(())
    }

    pub(super) async fn fail(&mut self, error: Error, resolved: Option<Resolved>) -> Result<Next, Halt> {
        self.leave_open();
        let error = error.settled();
        let failed = StepFailed {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: self.entry.meta().name.into(),
            attempt: self.attempt,
            error: error.clone(),
            resolved,
        };
        let mut record = self.record(&failed)?;
        record.burn = Some(self.burnt());
        let (home, key, name) = (self.home.clone(), self.key.clone(), self.entry.meta().name);
        let hand_over: Then = Box::new(move |place| {
            home.runtime().unsettled.settled(&key);
            home.answer(&key, name, place, Err(error));
        });
        self.home.runtime().journal.append(record, hand_over).await?;
        Ok(Next::Answered)
    }

    /// Whatever its bodies have begun ends with it, in the same commit.
    pub(super) fn leave_open(&mut self) {
        let Self { home, key, past, .. } = self;
        if home.runtime().stopped().is_none() {
            home.runtime().leave_open(key, past);
        }
    }

    /// It ends without an answer: that is on the log, if its start is.
    pub(super) fn abandon(&self) {
        self.home.leave(&self.key, || Some(self.burnt()));
    }

    /// What the attempt took, without what its own calls took.
    pub(super) fn burnt(&self) -> Burn {
        let whole = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        self.home.child_took(whole);
        Burn {
            duration_ms: whole.saturating_sub(self.children_ms),
            ..self.burn
        }
    }
}
