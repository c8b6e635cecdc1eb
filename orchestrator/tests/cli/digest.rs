//! A run as the engine would write it, in the middle of its work: one package done, one running with a step in doubt,
//! one denied, one waiting for them.

use std::collections::{BTreeMap, BTreeSet};

use neuron::{
    Author, Digest, Draft, Error, ErrorKind, Json, Parent, RunId, TokenId, Topic,
    topic::catalog,
    vocabulary::{
        Message,
        clearance::{ClearanceDenied, ClearanceGo, PlanDeclared},
        orchestration::{
            Claims, EdgeDeclared, EdgeReason, Expected, OrchestrationCompleted, OrchestrationCreated,
            OrchestrationDecomposed, OrchestrationFailed, PackageAssigned, PackageKind,
        },
        step::{PackageCompleted, PackageFailed, StepAttempted, StepCompleted, StepDoubted, StepStarted},
    },
};
use serde_json::json;

use crate::world::World;

pub fn run() -> RunId {
    RunId::new("digest-1").unwrap()
}

/// The identity of a call, in the form that the engine gives it.
pub fn key(of: &str) -> String {
    format!("{}#1", Digest::content(of.as_bytes()))
}

pub fn token(package: &str) -> TokenId {
    let (name, _) = package.split_once(' ').unwrap();
    TokenId::mint(name, &run(), &key(package), 1).unwrap()
}

/// A message without its schema, so that ids do not change with descriptions.
fn say<M: Message>(topic: Topic, author: &str, message: &M) -> Draft {
    let draft = Draft::new(topic, Author::new(author).unwrap(), M::TYPE).unwrap();
    draft.json(Json::of(message).unwrap(), None)
}

fn assigned(package: &str, claims: Claims) -> Draft {
    let (name, argument) = package.split_once(' ').unwrap();
    let message = PackageAssigned {
        scope: "digest-1".into(),
        key: key(package),
        name: name.into(),
        kind: if name == "merge" {
            PackageKind::Plan
        } else {
            PackageKind::Agent
        },
        occurrence: 1,
        token: token(package),
        attempt: 1,
        args: Some(BTreeMap::from([("url".into(), Json::of(argument).unwrap())])),
        claims,
        estimate: Some(Expected {
            tokens: 2_000,
            seconds: 30,
            tool_calls: 0,
        }),
        priority: 0,
    };
    say(catalog::packages(&run()), "digest-1", &message)
        .key(key(package))
        .unwrap()
}

fn edge(from: &str, to: &str, why: EdgeReason) -> Draft {
    let message = EdgeDeclared {
        from: key(from),
        to: key(to),
        why,
        parameter: (why == EdgeReason::Value).then(|| "parts".into()),
        index: (why == EdgeReason::Value).then_some(0),
        resource: (why == EdgeReason::Clearance).then(|| "browser".into()),
        because: (why == EdgeReason::Clearance).then(|| "both own `browser`".into()),
    };
    say(catalog::packages(&run()), "digest-1", &message)
}

fn planned(package: &str, claims: &Claims) -> Draft {
    let message = PlanDeclared {
        package: key(package),
        token: token(package),
        outline: Json::of(&json!({"rows": [{"name": "fetch"}]})).unwrap(),
        opaque: false,
        claims: claims.clone(),
        estimate: None,
    };
    say(catalog::plan(&token(package)), token(package).as_str(), &message)
}

fn go(package: &str) -> Draft {
    let message = ClearanceGo {
        package: key(package),
        token: token(package),
        round: 1,
        because: "nothing it asks for is held".into(),
        amendment: None,
    };
    say(catalog::clearance(&run()), "digest-1", &message)
        .key(key(package))
        .unwrap()
}

fn denied(package: &str, with: &str) -> Draft {
    let message = ClearanceDenied {
        package: key(package),
        token: token(package),
        round: 1,
        because: "its dependencies contradict each other: scout → merge → scout".into(),
        with: Some(key(with)),
        amendment: None,
    };
    say(catalog::clearance(&run()), "digest-1", &message)
        .key(key(package))
        .unwrap()
}

fn ended(package: &str, error: Option<Error>) -> Draft {
    let (scope, key, name) = (
        "digest-1".into(),
        key(package),
        package.split(' ').next().unwrap().into(),
    );
    let topic = catalog::lifecycle(&run());
    match error {
        None => {
            let output = Some(Json::of("a summary").unwrap());
            let message = PackageCompleted {
                scope,
                key,
                name,
                output,
                output_schema: None,
            };
            say(topic, "digest-1", &message)
        }
        Some(error) => say(
            topic,
            "digest-1",
            &PackageFailed {
                scope,
                key,
                name,
                error,
            },
        ),
    }
}

fn started(package: &str, step: &str, once: bool) -> Draft {
    let message = StepStarted {
        scope: key(package),
        key: key(step),
        name: step.split(' ').next().unwrap().into(),
        attempt: 1,
        args: Some(Json::of(&json!({"url": step.split(' ').nth(1)})).unwrap()),
        args_schema: None,
        once,
    };
    say(catalog::steps(&token(package)), token(package).as_str(), &message)
}

pub fn completed(package: &str, step: &str) -> Draft {
    let message = StepCompleted {
        scope: key(package),
        key: key(step),
        name: step.split(' ').next().unwrap().into(),
        attempt: 2,
        output: Some(Json::of(&json!({"words": 1_200})).unwrap()),
        output_schema: None,
        resolved: None,
    };
    say(catalog::steps(&token(package)), token(package).as_str(), &message)
}

fn attempted(package: &str, step: &str) -> Draft {
    let message = StepAttempted {
        scope: key(package),
        key: key(step),
        name: step.split(' ').next().unwrap().into(),
        attempt: 1,
        error: Error::not_done("connection refused"),
        retry_at: None,
    };
    say(catalog::steps(&token(package)), token(package).as_str(), &message)
}

pub fn doubted(package: &str, step: &str) -> Draft {
    let message = StepDoubted {
        scope: key(package),
        key: key(step),
        name: step.split(' ').next().unwrap().into(),
        attempt: 1,
        reason: "the process ended while it ran".into(),
    };
    say(catalog::steps(&token(package)), token(package).as_str(), &message)
}

/// The end of a run that failed.
pub fn failed(run: &RunId, why: &str) -> Draft {
    let error = Error::terminal(why);
    say(catalog::lifecycle(run), run.as_str(), &OrchestrationFailed { error })
}

impl World {
    /// A store with a run in the middle of its work.
    pub fn with_run() -> Self {
        let world = Self::empty().opened();
        world.append([created("digest-1")]);
        let browser = Claims {
            owns: BTreeSet::from(["browser".into()]),
            ..Claims::default()
        };
        let decomposed = OrchestrationDecomposed { round: 1, packages: 4 };
        world.append([
            say(catalog::lifecycle(&run()), "digest-1", &decomposed),
            assigned("researcher a", browser.clone()),
            assigned("payer b", browser.clone()),
            assigned("scout c", Claims::default()),
            assigned("merge d", Claims::default()),
            edge("researcher a", "payer b", EdgeReason::Clearance),
            edge("researcher a", "merge d", EdgeReason::Value),
            edge("payer b", "merge d", EdgeReason::Value),
            planned("researcher a", &browser),
            planned("payer b", &browser),
            planned("scout c", &Claims::default()),
            go("researcher a"),
            go("payer b"),
            denied("scout c", "merge d"),
        ]);
        world.append([
            started("researcher a", "fetch a", false),
            attempted("researcher a", "fetch a").parent(Parent::Index(0)),
            completed("researcher a", "fetch a").parent(Parent::Index(0)),
            ended("researcher a", None),
            ended(
                "scout c",
                Some(Error::new(ErrorKind::Denied, "its dependencies contradict each other")),
            ),
        ]);
        world.append([
            started("payer b", "pay b", true),
            doubted("payer b", "pay b").parent(Parent::Index(0)),
        ]);
        world
    }

    /// A second run, which has ended.
    pub fn and_an_ended_run(self) -> Self {
        let output = Some(Json::of("done").unwrap());
        self.append([
            created("digest-0"),
            say(
                catalog::lifecycle(&RunId::new("digest-0").unwrap()),
                "digest-0",
                &OrchestrationCompleted { output },
            ),
        ]);
        self
    }
}

fn created(run: &str) -> Draft {
    let message = OrchestrationCreated {
        name: "digest".into(),
        args: Some(Json::of(&json!({"urls": ["a", "b"]})).unwrap()),
        build: "digest 0.1.0".into(),
        registry: Digest::content(b"registry").to_string(),
        fork: None,
    };
    say(catalog::lifecycle(&RunId::new(run).unwrap()), run, &message)
}
