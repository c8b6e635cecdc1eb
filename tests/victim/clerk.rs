//! A body that is edited between a crash and the start after it, and steps that stop the process.

use std::env;

use orchestrator::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{fatal, is_edited, marks::mark};

#[step]
async fn note(cx: &Cx, what: String) -> Result<String> {
    mark(cx, &format!("note-{what}"))?;
    Ok(what)
}

/// What is packed. The edit `field` gives it one more field, with a default.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = before_the_edit)]
struct Order {
    item: String,
    #[serde(default, skip_serializing_if = "is_before_the_edit")]
    gift: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_before_the_edit(_: &bool) -> bool {
    !is_edited("field")
}

fn before_the_edit(schema: &mut schemars::Schema) {
    let fields = schema.get_mut("properties").and_then(|fields| fields.as_object_mut());
    if let Some(fields) = fields.filter(|_| !is_edited("field")) {
        fields.remove("gift");
    }
}

#[step]
async fn pack(cx: &Cx, order: Order) -> Result<String> {
    mark(cx, "pack")?;
    note(cx, format!("inside-{}", order.item)).await?;
    Ok(format!("{} {}", order.item, order.gift))
}

#[step]
async fn enter(cx: &Cx, user: String, password: Secret<String>) -> Result<String> {
    mark(cx, "enter")?;
    Ok(format!("{user} with {} letters", password.expose().len()))
}

#[step(once)]
async fn transfer(cx: &Cx, cents: u32) -> Result<u32> {
    mark(cx, &format!("transfer-{cents}"))?;
    fatal("transfer");
    Ok(cents)
}

/// Stops the process in its first instruction, until it is repaired.
#[step]
async fn last(cx: &Cx) -> Result<String> {
    fatal("last");
    mark(cx, "last")?;
    Ok("last".into())
}

#[agent(allow(unrecorded))]
async fn clerk(cx: &Cx) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let notes: &[&str] = match env::var("EDIT").as_deref() {
        Ok("insert") => &["a", "new", "b"],
        Ok("remove") => &["b"],
        Ok("reorder") => &["b", "a"],
        _ => &["a", "b"],
    };
    for what in notes {
        told.push(note(cx, (*what).into()).await?);
    }
    let order = Order {
        item: "lamp".into(),
        gift: false,
    };
    told.push(pack(cx, order).await?);
    let password = env::var("PASSWORD").unwrap_or_default();
    told.push(enter(cx, "ada".into(), password.into()).await?);
    told.push(match transfer(cx, if is_edited("once") { 6 } else { 5 }).await {
        Ok(cents) => format!("paid {cents}"),
        Err(error) => format!("not paid: {error}"),
    });
    told.push(last(cx).await?);
    Ok(told)
}

#[orchestrator]
pub(crate) async fn office(board: &Board) -> Result<Vec<String>> {
    Ok(board.assign(clerk, ()).await?)
}
