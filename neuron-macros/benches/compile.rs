//! What an annotated step costs the compiler: a crate with 200 steps against the same functions without the attribute.
//!
//! ```text
//! cargo bench -p neuron-macros --bench compile
//! ```
//!
//! Each bare function is called once, behind a box, as a table of steps holds it: else nobody would ask for its machine code.
//!
//! Both crates are built in the `dev` profile with everything that they depend on built already: once from nothing, once
//! after an edit of one body. The figures are the middle ones of several turns, taken in turn.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench prints figures and stops at the first fault"
)]

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

const STEPS: usize = 200;
const TURNS: usize = 5;

/// One of the two crates.
struct Crate {
    folder: PathBuf,
    name: &'static str,
    is_annotated: bool,
}

impl Crate {
    /// Its source; `edit` is a constant of one body.
    fn write(&self, edit: usize) {
        let mut source = "#![allow(dead_code)]\nuse neuron::{Cx, Result};\n\n".to_owned();
        for step in 0..STEPS {
            let constant = if step == STEPS / 2 { edit } else { step };
            let attribute = if self.is_annotated {
                "#[neuron::step(retry(3), uses(\"net\"))]\n"
            } else {
                ""
            };
            writeln!(
                source,
                "/// Reads page {step}.\n{attribute}pub async fn step_{step}(cx: &Cx, url: String, depth: u32) -> Result<Vec<String>> {{\n    \
                 let pages = (0..depth).map(|page| format!(\"{{url}}/{{page}}/{{}}\", {constant} + cx.attempt())).collect();\n    \
                 Ok(pages)\n}}\n"
            )
            .unwrap();
            if !self.is_annotated {
                writeln!(
                    source,
                    "pub fn boxed_{step}<'a>(cx: &'a Cx, url: String, depth: u32) -> std::pin::Pin<Box<dyn Future<Output = \
                     Result<Vec<String>>> + Send + 'a>> {{\n    Box::pin(step_{step}(cx, url, depth))\n}}\n"
                )
                .unwrap();
            }
        }
        fs::write(self.folder.join("src/lib.rs"), source).unwrap();
    }

    fn make(root: &Path, of: &Path, name: &'static str, is_annotated: bool) -> Self {
        let folder = of.join(name);
        fs::create_dir_all(folder.join("src")).unwrap();
        let neuron = root.join("neuron");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\nneuron = {{ path = \"{}\" }}\n\n\
             [workspace]\n",
            neuron.display()
        );
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        Self {
            folder,
            name,
            is_annotated,
        }
    }

    fn cargo(&self, arguments: &[&str]) {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .current_dir(&self.folder)
            .args(arguments)
            .arg("--offline")
            .arg("--quiet");
        command.env("CARGO_TARGET_DIR", self.folder.parent().unwrap().join("target"));
        command.env("CARGO_INCREMENTAL", "1").env_remove("RUSTFLAGS");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn build(&self) -> f64 {
        let began = Instant::now();
        self.cargo(&["build"]);
        began.elapsed().as_secs_f64() * 1e3
    }

    /// Milliseconds from nothing, and after an edit of one body.
    fn turn(&self, turn: usize) -> (f64, f64) {
        self.write(1_000 + 2 * turn);
        self.cargo(&["clean", "-p", self.name]);
        let whole = self.build();
        self.write(1_001 + 2 * turn);
        (whole, self.build())
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    // `cargo test` builds benches too and runs them with `--test`: nothing is measured then.
    if env::args().any(|argument| argument == "--test") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let crates = [("annotated", true), ("bare", false)].map(|(name, is)| Crate::make(root, folder.path(), name, is));
    for one in &crates {
        one.write(0);
        one.build();
    }
    let mut turns = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for turn in 0..TURNS {
        for (one, (whole, edited)) in crates.iter().zip(&mut turns) {
            let (from_nothing, after_an_edit) = one.turn(turn);
            whole.push(from_nothing);
            edited.push(after_an_edit);
        }
    }
    let [ours, bare] = turns.map(|(whole, edited)| (median(whole), median(edited)));
    let each = |ours: f64, bare: f64| (ours - bare) / STEPS as f64;
    println!(
        "{STEPS} steps, from nothing: {:.0} ms, bare {:.0} ms, {:.1} ms a step (goal ≤ 10)",
        ours.0,
        bare.0,
        each(ours.0, bare.0)
    );
    println!(
        "{STEPS} steps, one body edited: {:.0} ms, bare {:.0} ms, {:.1} ms a step (goal ≤ 2)",
        ours.1,
        bare.1,
        each(ours.1, bare.1)
    );
}
