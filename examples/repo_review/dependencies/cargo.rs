//! `Cargo.toml`.

use toml::{Table, Value};

use super::{Declared, Scope};

pub(super) fn parse(text: &str) -> Result<Vec<Declared>, String> {
    let root: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut all = Vec::new();
    tables(&root, &mut all);
    for target in root
        .get("target")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::values)
    {
        if let Some(target) = target.as_table() {
            tables(target, &mut all);
        }
    }
    // A workspace declares for its members; they then say `workspace = true`, which is local.
    if let Some(workspace) = root.get("workspace").and_then(Value::as_table) {
        table(workspace, "dependencies", Scope::Normal, &mut all);
    }
    Ok(all)
}

fn tables(within: &Table, all: &mut Vec<Declared>) {
    table(within, "dependencies", Scope::Normal, all);
    for name in [
        "dev-dependencies",
        "build-dependencies",
        "dev_dependencies",
        "build_dependencies",
    ] {
        table(within, name, Scope::Development, all);
    }
}

fn table(within: &Table, name: &str, scope: Scope, all: &mut Vec<Declared>) {
    for (name, value) in within.get(name).and_then(Value::as_table).into_iter().flatten() {
        all.push(declared(name, value, scope));
    }
}

fn declared(name: &str, value: &Value, scope: Scope) -> Declared {
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    let package = field("package").unwrap_or(name).to_owned();
    let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
    if inherited || (value.get("path").is_some() && field("git").is_none() && field("version").is_none()) {
        return Declared {
            name: package,
            requirement: None,
            scope: Scope::Local,
        };
    }
    let requirement = match (value.as_str().or_else(|| field("version")), field("git")) {
        (Some(version), _) => (version.trim() != "*").then(|| version.to_owned()),
        // A branch moves, a revision or a tag does not.
        (None, Some(_)) => field("rev")
            .or_else(|| field("tag"))
            .map(|fixed| format!("git {fixed}")),
        (None, None) => None,
    };
    Declared {
        name: package,
        requirement,
        scope,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_read_and_the_workspace_s_own_parts_are_local() {
        let all = parse(
            r#"
            [dependencies]
            a = "1"
            b = { workspace = true }
            c = { path = "../c" }
            d = { git = "https://example.org/d" }
            e = { git = "https://example.org/e", rev = "abc" }
            [dev-dependencies]
            f = "*"
            [target.'cfg(unix)'.dependencies]
            g = { version = "2", package = "g-real" }
            [workspace.dependencies]
            h = "3"
            "#,
        )
        .unwrap();
        let shown: Vec<_> = all
            .iter()
            .map(|one| (one.name.as_str(), one.requirement.as_deref(), one.scope))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", Some("1"), Scope::Normal),
                ("b", None, Scope::Local),
                ("c", None, Scope::Local),
                ("d", None, Scope::Normal),
                ("e", Some("git abc"), Scope::Normal),
                ("f", None, Scope::Development),
                ("g-real", Some("2"), Scope::Normal),
                ("h", Some("3"), Scope::Normal),
            ]
        );
    }

    #[test]
    fn a_key_given_twice_is_an_error() {
        assert!(parse("[dependencies]\na = \"1\"\na = \"2\"\n").is_err());
    }
}
