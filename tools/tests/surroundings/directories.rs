//! Places of the domain's directory.

use serde_json::Value;

use crate::{doctor_after, expect, is_root, of, private};

#[test]
fn a_full_file_system_of_the_directory_is_told() {
    if !is_root() {
        return;
    }
    let home = private();
    let path = home.path().to_str().expect("text");
    let mount = |options: &str| format!("mount -t tmpfs -o mode=700,{options} dds {path}");
    let arguments = ["--directory", path, "--peers", "5", "--topics", "2"];
    let report = doctor_after(&mount("size=8k"), &arguments);
    expect(&report, "directory-space", "error", "8 KiB");
    let report = doctor_after(&mount("size=32k"), &arguments);
    expect(&report, "directory-space", "warning", "32 KiB");
    let report = doctor_after(&mount("size=1m,nr_inodes=4"), &arguments);
    expect(&report, "directory-space", "error", "3 files free");
    let report = doctor_after(&mount("size=1m"), &arguments);
    expect(&report, "directory-space", "ok", "1 MiB");
}

#[test]
fn a_read_only_directory_is_told() {
    if !is_root() {
        return;
    }
    let home = private();
    let path = home.path().to_str().expect("text");
    let mount = format!("mount -t tmpfs -o mode=700,ro dds {path}");
    for directory in [path.to_owned(), format!("{path}/domains")] {
        let report = doctor_after(&mount, &["--directory", &directory]);
        expect(&report, "directory", "error", "is read-only");
        assert_eq!(report["fit"], false);
    }
}

#[test]
fn a_small_dev_shm_is_told() {
    if !is_root() {
        return;
    }
    let report = doctor_after("mount -t tmpfs -o size=512k x /dev/shm", &[]);
    expect(&report, "dev-shm", "warning", "512 KiB of 512 KiB free");
}

/// A system made anew below /run, in a mount namespace.
const NEW_RUN: &str = "mount -t tmpfs -o mode=755 run /run\n";

#[test]
fn a_cleaner_of_the_place_of_the_directory_is_told() {
    if !is_root() {
        return;
    }
    let home = private();
    let path = home.path().join("spindle-dds-0");
    let path = path.to_str().expect("text");
    let rule = |line: &str| {
        format!(
            "{NEW_RUN}mkdir -p /run/systemd/system /run/tmpfiles.d\n\
             echo '{line}' > /run/tmpfiles.d/spindle-test.conf\n"
        )
    };
    let above = home.path().display();
    let arguments = ["--directory", path];
    let report = doctor_after(&rule(&format!("d {above} 0700 root root 7d")), &arguments);
    expect(
        &report,
        "directory-place",
        "warning",
        "files not used for 7d are removed",
    );
    expect(
        &report,
        "directory-place",
        "warning",
        "/run/tmpfiles.d/spindle-test.conf",
    );
    let report = doctor_after(&rule(&format!("x {above}/spindle-dds-*")), &arguments);
    let findings = of(&report, "directory-place");
    let says = |it: &&&Value| {
        it["what"]
            .as_str()
            .is_some_and(|it| it.contains("not used for"))
    };
    assert!(!findings.iter().any(|it| says(&it)), "{findings:#?}");
}

#[test]
fn a_directory_that_goes_with_a_login_is_told() {
    if !is_root() {
        return;
    }
    let made = format!("{NEW_RUN}mkdir -p -m 700 /run/user/4711/dds\n");
    let report = doctor_after(&made, &["--directory", "/run/user/4711/dds"]);
    expect(
        &report,
        "directory-place",
        "warning",
        "logs out for the last time",
    );
}

#[test]
fn a_directory_that_one_container_or_service_has_for_itself_is_told() {
    if !is_root() {
        return;
    }
    let made = format!(
        "{NEW_RUN}touch /run/.containerenv\nmount -t tmpfs -o mode=1777,size=64m shm /dev/shm\n"
    );
    let report = doctor_after(&made, &["--directory", "/dev/shm/spindle-dds-0"]);
    expect(
        &report,
        "directory-place",
        "warning",
        "of this container alone (tmpfs at /dev/shm)",
    );
    let home = private();
    let private_tmp = home.path().join("systemd-private-1-feed.service-x/tmp");
    std::fs::create_dir_all(&private_tmp).expect("made");
    let other = home.path().join("tmp");
    std::fs::create_dir(&other).expect("made");
    let bound = format!("mount --bind {} {}", private_tmp.display(), other.display());
    let inside = other.join("dds");
    let report = doctor_after(&bound, &["--directory", inside.to_str().expect("text")]);
    expect(&report, "directory-place", "warning", "PrivateTmp");
}
