//! Orders about builds of a program, on `$builds`; the key of each is the build's name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages;

messages! {
    BuildPinned "build.pinned";
    BuildDrained "build.drained";
    BuildRetired "build.retired";
    BuildReleased "build.released";
}

macro_rules! orders { ($($(#[$doc:meta])* $name:ident;)*) => {$(
    $(#[$doc])*
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct $name {
        /// The build, as the runs that it began name it.
        pub build: String,
        /// The reason, for whoever reads the log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub because: Option<String>,
    }
)*}}

orders! {
    /// The open runs of a build are taken up by processes of the same build only. An order.
    BuildPinned;
    /// A process of the build begins no new run, and takes up those of its own build only. An order.
    BuildDrained;
    /// A process of the build begins and takes up no run. An order.
    BuildRetired;
    /// The build is no longer pinned, drained or retired. An order.
    BuildReleased;
}
