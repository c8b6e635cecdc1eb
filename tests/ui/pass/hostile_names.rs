//! Whatever a user calls their types, modules, functions and macros, an expansion means what it meant.
#![allow(dead_code, unused_macros, non_snake_case)]

use neuron::{Cx as Context, Node as Place, Plan as Sheet, agent, plan, step};

mod core {
    pub struct File;
}
mod std {}
mod alloc {}

macro_rules! payload {
    ($($name:ident)*) => {$(
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {}
    )*};
}
payload!(Result Option Box Call Vec String Step Def Meta Entry Body Payload);

macro_rules! stringify {
    () => {};
}
macro_rules! file {
    () => {};
}
macro_rules! line {
    () => {};
}
macro_rules! concat {
    () => {};
}

fn Ok(_: u8) {}
fn Err(_: u8) {}
fn body() {}

type Reply<T> = ::std::result::Result<T, ::std::string::String>;

#[step]
async fn hostile(_: &Context, file: Result, line: Box, meta: Call, entry: Option) -> Reply<Vec> {
    let _ = (file, line, meta, entry);
    ::std::result::Result::Ok(Vec {})
}

#[step]
async fn r#type(_: &Context, r#fn: String) -> Reply<Entry> {
    let _ = r#fn;
    ::std::result::Result::Ok(Entry {})
}

#[plan]
fn outline(plan: &Sheet, string: Place<String>) -> Place<Entry> {
    plan.step(r#type, string)
}

#[agent(plan = outline)]
async fn scout(cx: &Context, string: String) -> ::neuron::Result<Entry> {
    ::std::result::Result::Ok(r#type(cx, string).await?)
}

#[step]
async fn like_ours(__cx: &Context, __0: u32, __1: u32, __inputs: u32) -> Reply<Vec> {
    let _ = (__0, __1, __inputs);
    ::std::result::Result::Ok(Vec {})
}

/// A module of the runtime's own name.
mod inner {
    mod neuron {}
    mod orchestrator {}
    mod inventory {}
    use ::neuron::{Cx, Event, agent, on, step};

    #[step]
    async fn call(cx: &Cx, neuron: super::Result) -> ::neuron::Result<super::Vec> {
        let _ = (cx, neuron);
        ::std::result::Result::Ok(super::Vec {})
    }

    #[agent(allow(unrecorded))]
    async fn inventory(cx: &Cx, result: super::Result) -> ::neuron::Result<super::Vec> {
        let _ = ::std::time::Instant::now();
        ::std::result::Result::Ok(call(cx, result).await?)
    }

    #[on("orders.placed")]
    async fn body(event: &Event, result: super::Result) -> ::neuron::Result<()> {
        let _ = (event, result);
        ::std::result::Result::Ok(())
    }
}

fn main() {}
