//! The builder as used in a build script.

use std::path::PathBuf;
use std::{fs, io};

use spindle_dds_idl::{BuildError, Builder};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> io::Result<Self> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("include"))?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("writes");
        path
    }
}

#[test]
fn generates_one_file_from_all_files_read() {
    let scratch = Scratch::new("builder_generates").expect("writes");
    let main = scratch.write(
        "main.idl",
        "#include \"a.idl\"\nmodule m { struct S { A a; T t; }; };",
    );
    scratch.write(
        "include/a.idl",
        "module m { typedef TYPE A; @nested struct T { long x; }; };",
    );
    let builder = Builder::new()
        .file(&main)
        .include_dir(scratch.0.join("include"))
        .define("TYPE", "double")
        .out_dir(&scratch.0);
    builder.generate().expect("is right");
    let text = fs::read_to_string(scratch.0.join("main.rs")).expect("was written");
    assert!(text.contains("pub type A = f64;"), "{text}");
    assert!(text.contains("use ::spindle_dds::idl as __rt;"), "{text}");

    let (again, files) = builder.generate_string().expect("is right");
    assert_eq!(again, text);
    assert_eq!(files.len(), 2);

    // Nothing changed, so nothing is written.
    let modified = || {
        fs::metadata(scratch.0.join("main.rs"))
            .and_then(|data| data.modified())
            .ok()
    };
    let before = modified();
    builder.generate().expect("is right");
    assert_eq!(modified(), before);
}

#[test]
fn built_in_files_are_not_watched() {
    let scratch = Scratch::new("builder_built_in").expect("writes");
    let main = scratch.write(
        "main.idl",
        "#include <tao/LongSeq.pidl>\nstruct S { CORBA::LongSeq values; };",
    );
    let builder = Builder::new().file(&main).out_dir(&scratch.0);
    let (text, files) = builder.generate_string().expect("is right");
    assert!(text.contains("pub type LongSeq"), "{text}");
    assert_eq!(files, [main]);
}

#[test]
fn errors_are_readable() {
    let scratch = Scratch::new("builder_errors").expect("writes");
    let main = scratch.write("wrong.idl", "struct S { Missing m; };");
    let error = Builder::new()
        .file(main)
        .out_dir(&scratch.0)
        .generate()
        .expect_err("is wrong");
    let text = format!("{error:?}");
    assert!(text.contains("wrong.idl:1:12: error: "), "{text}");
    assert!(!scratch.0.join("wrong.rs").exists());

    let error = Builder::new().generate().expect_err("has no file");
    assert!(matches!(error, BuildError::NoFile));
}
