//! The cost of compilation: CPU time of all threads from the text to the model and from there
//! to formatted Rust, and elapsed time, for 1,000 structures and for the corpus (`tests/corpus`,
//! file by file). One JSON line each. Build scripts run the same code, without optimisation
//! unless `[profile.dev.build-override]` sets it.
//!
//! `cargo bench -p spindle-dds-idl --bench compile [structures|corpus]`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use rustix::time::{ClockId, clock_gettime};
use spindle_dds_idl::emit::{EmitOptions, emit};
use spindle_dds_idl::{Compilation, Options, compile, compile_str};

const STRUCTURES: usize = 1000;

/// Number of runs, of which the fastest counts: other load only adds time.
const RUNS: usize = 5;

fn main() {
    let wanted = env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    for name in ["structures", "corpus"] {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let runs = (0..RUNS).map(|_| match name {
            "structures" => structures(),
            _ => corpus(),
        });
        let best = runs.min_by(|one, other| one.all_ms().total_cmp(&other.all_ms()));
        if let Some(cost) = best {
            println!(
                "{{\"case\":\"{name}\",\"idl_lines\":{},\"rust_lines\":{},\"model_ms\":{:.1},\
                 \"rust_ms\":{:.1},\"cpu_ms\":{:.1},\"wall_ms\":{:.1}}}",
                cost.idl_lines,
                cost.rust_lines,
                cost.model_ms,
                cost.rust_ms,
                cost.all_ms(),
                cost.wall_ms
            );
        }
    }
}

/// The cost of one run.
#[derive(Debug, Default)]
struct Cost {
    idl_lines: usize,
    rust_lines: usize,
    model_ms: f64,
    rust_ms: f64,
    wall_ms: f64,
}

impl Cost {
    fn all_ms(&self) -> f64 {
        self.model_ms + self.rust_ms
    }

    /// Adds the cost of one compilation.
    fn add(&mut self, idl_lines: usize, compile: impl FnOnce() -> Compilation) {
        let (start, start_ms) = (Instant::now(), cpu_ms());
        let compilation = compile();
        let compiled_ms = cpu_ms();
        self.idl_lines += idl_lines;
        self.model_ms += compiled_ms - start_ms;
        let model = compilation.ok().expect("compiles");
        let rust = emit(model, &EmitOptions::default()).expect("emits");
        self.rust_ms += cpu_ms() - compiled_ms;
        self.wall_ms += start.elapsed().as_secs_f64() * 1e3;
        self.rust_lines += rust.lines().count();
    }
}

/// CPU time of this process.
fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn structures() -> Cost {
    let mut text = String::from("module large {\nenum Mode { OFF, STANDBY, ON };\n");
    for number in 0..STRUCTURES {
        let extensibility = ["@final ", "", "@mutable "][number % 3];
        let other = match number {
            0 => "long".to_owned(),
            _ => format!("S{}", number - number.min(1 + number % 7)),
        };
        let inner = if number % 8 == 0 { "long" } else { &other };
        writeln!(
            text,
            "/// Number {number}.\n{extensibility}struct S{number} {{\n  @key unsigned long id;\n  \
             Mode mode;\n  double position[3];\n  string<32> name;\n  sequence<double> values;\n  \
             @optional float level;\n  sequence<{inner}, 4> parts;\n}};"
        )
        .expect("there is memory");
    }
    text.push_str("};\n");
    let mut cost = Cost::default();
    let options = Options::default();
    cost.add(text.lines().count(), || {
        compile_str("large.idl", text.as_bytes(), &options)
    });
    assert!(cost.rust_lines > STRUCTURES, "is right IDL");
    cost
}

fn corpus() -> Cost {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let include_dirs = ["OpenDDS", "OpenDDS/tests/DCPS/Compiler/TryConstruct"];
    let options = Options {
        include_dirs: include_dirs.map(|folder| root.join(folder)).to_vec(),
        ..Options::default()
    };
    let mut files = Vec::new();
    find(&root, &mut files);
    files.sort();
    let mut cost = Cost::default();
    for file in files {
        let lines = fs::read(&file).map_or(0, |text| text.split(|byte| *byte == b'\n').count());
        cost.add(lines, || compile(std::slice::from_ref(&file), &options));
    }
    cost
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("is a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            files.push(path);
        }
    }
}
