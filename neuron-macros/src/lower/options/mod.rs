//! The arguments of an attribute: which there are, for which kind, and what each may say.

mod table;
mod value;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, LitStr, Result};

use super::{
    duration::milliseconds,
    kind::Kind,
    model::{Estimate, From, Options, Retry},
};
use crate::{
    errors::Errors,
    parse::{Argument, Item, Value},
};
use table::Spec;
use value::{number, path, text};

/// Reads all arguments. What is wrong with one of them is noted, and the others still count.
pub(super) fn lower(kind: Kind, arguments: Vec<Argument>, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let mut seen: Vec<&str> = Vec::new();
    for argument in arguments {
        let Some(spec) = table::find(kind, &argument.name, errors) else {
            continue;
        };
        if seen.contains(&spec.name) && !spec.repeatable {
            errors.on(&argument.name, format!("`{}` is given twice", spec.name));
            continue;
        }
        seen.push(spec.name);
        if let Err(error) = options.set(spec, &argument) {
            errors.push(error);
        }
    }
    options
}

impl Options {
    fn set(&mut self, spec: &Spec, argument: &Argument) -> Result<()> {
        match (spec.name, &argument.value) {
            ("once", Value::Flag) => self.once = true,
            ("share", Value::Flag) => self.share = true,
            ("name", Value::Is(value)) => self.name = Some(text(spec, value)?),
            ("was", Value::Is(value)) => self.was.push(text(spec, value)?),
            ("timeout", Value::Is(value)) => self.timeout_ms = Some(length(spec, value)?),
            ("resolve", Value::Is(value)) => self.resolve = Some(path(spec, value)?),
            ("plan", Value::Is(value)) => self.plan = Some(path(spec, value)?),
            ("crate", Value::Is(value)) => self.runtime = Some(path(spec, value)?),
            ("from", Value::Is(value)) => self.from = beginning(spec, value)?,
            ("in_flight", Value::Is(value)) => self.in_flight = Some(number(spec, value)?),
            ("allow", Value::List(items, _)) => self.unrecorded = allows(spec, argument, items)?,
            ("kind", Value::List(items, _)) => self.add_kind(spec, argument, items)?,
            ("uses", Value::List(items, _)) => self.add_use(spec, argument, items)?,
            ("owns", Value::List(items, _)) => self.add_owned(spec, argument, items)?,
            ("estimate", Value::List(items, _)) => self.estimate = Some(estimate(spec, argument, items)?),
            ("retry", Value::List(items, _)) => self.retry = Some(retry(spec, argument, items)?),
            ("ignore", Value::List(items, _)) => self.add_ignored(spec, argument, items)?,
            _ => return Err(spec.form_error(argument)),
        }
        Ok(())
    }

    fn add_use(&mut self, spec: &Spec, argument: &Argument, items: &[Item]) -> Result<()> {
        let (resource, count) = match items {
            [Item { name: None, value }] => (text(spec, value)?, 1),
            [
                Item { name: None, value },
                Item {
                    name: None,
                    value: count,
                },
            ] => (text(spec, value)?, number::<u32>(spec, count)?),
            _ => return Err(spec.form_error(argument)),
        };
        self.refuse_named(&resource)?;
        self.uses.push((resource, count));
        Ok(())
    }

    fn add_owned(&mut self, spec: &Spec, argument: &Argument, items: &[Item]) -> Result<()> {
        let [Item { name: None, value }] = items else {
            return Err(spec.form_error(argument));
        };
        let resource = text(spec, value)?;
        self.refuse_named(&resource)?;
        self.owns.push(resource);
        Ok(())
    }

    fn add_kind(&mut self, spec: &Spec, argument: &Argument, items: &[Item]) -> Result<()> {
        let [Item { name: None, value }] = items else {
            return Err(spec.form_error(argument));
        };
        let kind = text(spec, value)?;
        if self.kinds.iter().any(|known| known.value() == kind.value()) {
            let message = format!("the type `{}` is named twice", kind.value());
            return Err(syn::Error::new_spanned(kind, message));
        }
        self.kinds.push(kind);
        Ok(())
    }

    fn refuse_named(&self, resource: &LitStr) -> Result<()> {
        let mut named = self.uses.iter().map(|(name, _)| name).chain(&self.owns);
        if named.all(|name| name.value() != resource.value()) {
            return Ok(());
        }
        let (name, rule) = (resource.value(), "it is either used, once with its count, or owned");
        Err(syn::Error::new_spanned(
            resource,
            format!("the resource `{name}` is named twice; {rule}"),
        ))
    }

    fn add_ignored(&mut self, spec: &Spec, argument: &Argument, items: &[Item]) -> Result<()> {
        if items.is_empty() {
            return Err(spec.form_error(argument));
        }
        for item in items {
            let ident = ignored(spec, item)?;
            if self.ignored.contains(&ident) {
                return Err(syn::Error::new_spanned(&ident, format!("`{ident}` is ignored twice")));
            }
            self.ignored.push(ident);
        }
        Ok(())
    }
}

fn allows(spec: &Spec, argument: &Argument, items: &[Item]) -> Result<bool> {
    let [Item { name: None, value }] = items else {
        return Err(spec.form_error(argument));
    };
    let is_known = path(spec, value)?.is_ident("unrecorded");
    is_known.then_some(true).ok_or_else(|| spec.form_error(value))
}

fn beginning(spec: &Spec, value: &Expr) -> Result<From> {
    let place = path(spec, value)?;
    match place.get_ident() {
        Some(ident) if ident == "start" => Ok(From::Start),
        Some(ident) if ident == "now" => Ok(From::Now),
        _ => Err(spec.form_error(value)),
    }
}

fn ignored(spec: &Spec, item: &Item) -> Result<Ident> {
    let plain = item.name.is_none().then(|| path(spec, &item.value)).transpose()?;
    let ident = plain.as_ref().and_then(|path| path.get_ident());
    ident.cloned().ok_or_else(|| spec.form_error(&item.value))
}

fn estimate(spec: &Spec, argument: &Argument, items: &[Item]) -> Result<Estimate> {
    let mut estimate = Estimate::default();
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        let Some(name) = &item.name else {
            return Err(spec.form_error(&item.value));
        };
        let field = match name.to_string().as_str() {
            "tokens" => &mut estimate.tokens,
            "seconds" => &mut estimate.seconds,
            "tool_calls" => &mut estimate.tool_calls,
            _ => return Err(spec.form_error(name)),
        };
        *field = number::<u64>(spec, &item.value)?;
        if seen.contains(&name.to_string()) {
            return Err(syn::Error::new_spanned(name, format!("`{name}` is given twice")));
        }
        seen.push(name.to_string());
    }
    if seen.is_empty() {
        return Err(spec.form_error(argument));
    }
    Ok(estimate)
}

fn retry(spec: &Spec, argument: &Argument, items: &[Item]) -> Result<Retry> {
    let [Item { name: None, value }, named @ ..] = items else {
        return Err(spec.form_error(argument));
    };
    let mut retry = Retry {
        max: number(spec, value)?,
        backoff_ms: 0,
        on: None,
    };
    for item in named {
        let Some(name) = &item.name else {
            return Err(spec.form_error(argument));
        };
        let given = match name.to_string().as_str() {
            "backoff" => std::mem::replace(&mut retry.backoff_ms, length(spec, &item.value)?) > 0,
            "on" => retry.on.replace(path(spec, &item.value)?).is_some(),
            _ => return Err(spec.form_error(argument)),
        };
        if given {
            return Err(syn::Error::new_spanned(name, format!("`{name}` is given twice")));
        }
    }
    Ok(retry)
}

fn length(spec: &Spec, value: &Expr) -> Result<u64> {
    let text = text(spec, value)?;
    milliseconds(&text.value()).map_err(|message| syn::Error::new_spanned(value.to_token_stream(), message))
}
