//! What a body asks of people, and what is asked of it while it runs: questions and updates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{messages, present};
use crate::{Error, Json, Millis, SchemaRef};

messages! {
    QuestionAsked "question.asked";
    QuestionAnswered "question.answered";
    QuestionLapsed "question.lapsed";
    QuestionRefused "question.refused";
    QuestionWithdrawn "question.withdrawn";
    UpdateAccepting "update.accepting";
    UpdateTaken "update.taken";
    UpdateRefused "update.refused";
    UpdateReturned "update.returned";
    UpdateAnswered "update.answered";
}

/// A body asks a person. It waits, at no cost, for `control.answered`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAsked {
    /// The scope whose body asks.
    pub scope: String,
    /// The call, by which it is answered.
    pub key: String,
    /// `$ask`.
    pub name: String,
    /// What is asked.
    pub question: String,
    /// The schema of an answer. It is registered with this envelope.
    pub answer: SchemaRef,
    /// Until when it may be answered; without one, for as long as the body waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
}

/// A person's answer, as it is given to the body. The first one that fits stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswered {
    /// The scope whose body asked.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$ask`.
    pub name: String,
    /// The answer. Absent if it stands as artifact `answer`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Json>,
    /// The schema that it has.
    pub answer_schema: SchemaRef,
    /// Who gave it: the author of the envelope that is the cause of this one.
    pub by: String,
}

/// Nobody answered in time, which is an answer to the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionLapsed {
    /// The scope whose body asked.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$ask`.
    pub name: String,
}

/// An answer was given that is none. The question stays open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRefused {
    /// The scope whose body asked.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$ask`.
    pub name: String,
    /// The `pos` of what was given: what comes after it may be the answer.
    pub given: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// The body let go of a question: nobody needs to answer it any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionWithdrawn {
    /// The scope whose body asked.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$ask`.
    pub name: String,
}

/// From here on a body takes updates of a name. It is said once per name and scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateAccepting {
    /// The scope whose body takes them.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$update`.
    pub name: String,
    /// The name of the updates.
    pub update: String,
    /// The schema of a request. It is registered with this envelope, as is the other.
    pub request: SchemaRef,
    /// The schema of a response.
    pub response: SchemaRef,
}

impl UpdateAccepting {
    /// The birth header `key` under which the last such envelope of a topic is found, by the name of the updates.
    ///
    /// ```
    /// use neuron::vocabulary::dialogue::UpdateAccepting;
    /// assert_eq!(UpdateAccepting::keyed("add"), "update add");
    /// ```
    pub fn keyed(update: &str) -> String {
        format!("update {update}")
    }
}

/// An update is taken, which is an answer to the body. Each is taken once, in the order of their requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTaken {
    /// The scope whose body took it.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$update`.
    pub name: String,
    /// The name of the update.
    pub update: String,
    /// The `pos` of the request, which is the cause of this envelope.
    pub asked: u64,
    /// What it asks. Absent if it stands as artifact `request`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub request: Option<Json>,
    /// The schema that it has.
    pub request_schema: SchemaRef,
}

/// A request that was taken and that the body was never told of: it is there for the next who takes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateReturned {
    /// The scope whose body took it.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$update`.
    pub name: String,
    /// The name of the update.
    pub update: String,
    /// The `pos` of the request.
    pub asked: u64,
}

/// A request that no body can take. Whoever made it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRefused {
    /// The scope whose body would have taken it.
    pub scope: String,
    /// The call that would have been given it.
    pub key: String,
    /// `$update`.
    pub name: String,
    /// The name of the update.
    pub update: String,
    /// The `pos` of the request, which is the cause of this envelope.
    pub asked: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// What a body responds to an update. Whoever made the request waits for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateAnswered {
    /// The scope whose body responds.
    pub scope: String,
    /// The call.
    pub key: String,
    /// `$respond`.
    pub name: String,
    /// The `pos` of the request.
    pub asked: u64,
    /// The response. Absent if it stands as artifact `response`, or the body refuses.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub response: Option<Json>,
    /// Why the body refuses, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Json>")]
    pub error: Option<Error>,
}
