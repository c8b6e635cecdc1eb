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

fn main() {}
