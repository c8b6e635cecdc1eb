//! `package.json` and `composer.json`.

use serde_json::{Map, Value};

use super::{Declared, Scope};

pub(super) fn package(text: &str) -> Result<Vec<Declared>, String> {
    let root = object(text)?;
    let mut all = Vec::new();
    // What a package wants beside it (`peer`) it usually installs for its own tests too, at another version; the table
    // that installs it counts, so the peers come last.
    let tables = [
        ("dependencies", Scope::Normal),
        ("optionalDependencies", Scope::Normal),
        ("devDependencies", Scope::Development),
        ("peerDependencies", Scope::Normal),
    ];
    for (table, scope) in tables {
        for (name, value) in entries(&root, table)? {
            if table == "peerDependencies" && all.iter().any(|one: &Declared| one.name == *name) {
                continue;
            }
            let requirement = value
                .as_str()
                .ok_or_else(|| format!("the requirement of `{name}` is no string"))?;
            all.push(npm(name, requirement.trim(), scope));
        }
    }
    Ok(all)
}

pub(super) fn composer(text: &str) -> Result<Vec<Declared>, String> {
    let root = object(text)?;
    let mut all = Vec::new();
    for (table, scope) in [("require", Scope::Normal), ("require-dev", Scope::Development)] {
        for (name, value) in entries(&root, table)? {
            // What has no vendor is the platform: `php`, `ext-json`.
            if name.contains('/') {
                let requirement = value.as_str().map(str::trim).filter(|one| !matches!(*one, "" | "*"));
                all.push(Declared {
                    name: name.clone(),
                    requirement: requirement.map(str::to_owned),
                    scope,
                });
            }
        }
    }
    Ok(all)
}

fn npm(name: &str, requirement: &str, scope: Scope) -> Declared {
    let name = name.to_owned();
    if ["workspace:", "file:", "link:", "portal:", "catalog:"]
        .iter()
        .any(|local| requirement.starts_with(local))
    {
        return Declared {
            name,
            requirement: None,
            scope: Scope::Local,
        };
    }
    let loose = matches!(requirement, "" | "*" | "x" | "X" | "latest" | "next");
    // A Git address without `#…` follows the default branch.
    let moving = (requirement.contains("git") || requirement.contains('/'))
        && is_address(requirement)
        && !requirement.contains('#');
    let requirement = (!loose && !moving).then(|| requirement.to_owned());
    Declared {
        name,
        requirement,
        scope,
    }
}

fn is_address(requirement: &str) -> bool {
    let shorthand = || requirement.split('/').count() == 2 && !requirement.starts_with('@');
    (requirement.contains("git") && requirement.contains(':')) || (!requirement.contains(':') && shorthand())
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn entries<'a>(
    root: &'a Map<String, Value>,
    table: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)> + use<'a>, String> {
    match root.get(table) {
        // PHP writes an empty object as an empty list.
        None => Ok(None.into_iter().flatten()),
        Some(Value::Array(list)) if list.is_empty() => Ok(None.into_iter().flatten()),
        Some(Value::Object(entries)) => Ok(Some(entries).into_iter().flatten()),
        Some(_) => Err(format!("`{table}` is no object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_version_is_told_from_a_requirement() {
        let of = |requirement: &str| npm("a", requirement, Scope::Normal);
        for loose in [
            "",
            "*",
            "latest",
            "git+https://example.org/a.git",
            "owner/repo",
            "github:owner/repo",
        ] {
            assert_eq!(of(loose).requirement, None, "{loose}");
        }
        for firm in [
            "^1.2.3",
            "1.x",
            "owner/repo#v1",
            "npm:other@^2",
            "https://example.org/a.tgz",
        ] {
            assert_eq!(of(firm).requirement.as_deref(), Some(firm));
        }
        assert_eq!(of("workspace:*").scope, Scope::Local);
    }

    #[test]
    fn a_table_of_another_shape_is_said_to_be_malformed() {
        assert!(
            package("{\"dependencies\": 3}")
                .unwrap_err()
                .contains("`dependencies` is no object")
        );
        assert!(package("{\"dependencies\": {\"a\": 3}}").unwrap_err().contains("`a`"));
        assert!(package("[]").is_err());
        assert_eq!(
            composer("{\"require\": [], \"require-dev\": {\"php\": \"8\", \"a/b\": \"*\"}}").unwrap(),
            [Declared {
                name: "a/b".into(),
                requirement: None,
                scope: Scope::Development
            }]
        );
    }
}
