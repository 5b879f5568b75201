//! `spindle log`, on logs that are written by the library.

mod logs;

use logs::{Directory, Written, log_id, spindle};

/// The three logs of an ordinary group: the same records, and ends that differ.
fn group() -> Directory {
    let directory = Directory::new();
    for (name, id, records) in [("a", 0xa1, 60), ("b", 0xb2, 60), ("c", 0xc3, 45)] {
        directory.write(&Written::new(name, id, records));
    }
    directory
}

#[test]
fn logs_are_listed() {
    let directory = group();
    directory.write(&Written {
        domain: 7,
        topic: "rt/wind speed",
        ..Written::new("a", 0xd4, 0)
    });
    directory.write(&Written {
        topic: "Torn",
        ..Written::new("a", 0xe5, 9)
    });
    directory.append("a/domain-0/Torn", &[0xd5; 57]);
    directory.write(&Written {
        topic: "Damaged",
        ..Written::new("a", 0xf6, 60)
    });
    directory.flip_last("a/domain-0/Damaged", 200);
    insta::assert_snapshot!(directory.run(&["log", "ls", "a"]));
    insta::assert_snapshot!(directory.run(&["log", "ls", "a", "--topic", "Track", "--json"]));
    let in_use = directory.in_use("a/domain-7", || {
        directory.run(&["log", "ls", "a", "--domain", "7"])
    });
    insta::assert_snapshot!(in_use);
    directory.make("empty");
    let empty = directory.run(&["log", "ls", "empty"]);
    assert_eq!(empty, "exit 0\nempty: there are no logs\n");
    let none = directory.run(&["log", "ls", "nowhere"]);
    assert_eq!(
        none,
        "exit 1\nspindle log: nowhere: No such file or directory (os error 2)\n"
    );
    let other = directory.run(&["log", "ls", "a", "--topic", "Plot"]);
    assert_eq!(
        other,
        "exit 1\nspindle log: a: there is no log of topic Plot\n"
    );
}

#[test]
fn records_are_printed() {
    let directory = group();
    let cat = |more: &[&str]| {
        let arguments = [&["log", "cat", "a", "--topic", "Track"], more].concat();
        directory.run(&arguments)
    };
    // The last ones, with a dispose and an unregistration.
    insta::assert_snapshot!(cat(&["--from", "75"]));
    assert_eq!(cat(&[]).lines().count(), 61);
    // Without the type, and with bytes that are not of the type.
    directory.write(&Written {
        topic: "Untyped",
        type_information: Vec::new(),
        ..Written::new("a", 0xd4, 20)
    });
    directory.write(&Written {
        topic: "Wrong",
        payload_len: 5,
        ..Written::new("a", 0xd5, 1)
    });
    let untyped = ["log", "cat", "a", "--topic", "Untyped", "--from", "24"];
    insta::assert_snapshot!(directory.run(&untyped));
    insta::assert_snapshot!(directory.run(&["log", "cat", "a", "--topic", "Wrong"]));
    // Of two domains.
    directory.write(&Written {
        domain: 7,
        ..Written::new("a", 0xd6, 1)
    });
    let which = cat(&[]);
    assert!(which.contains("say --domain 0 or --domain 7"), "{which}");
    assert_eq!(cat(&["--domain", "7"]).lines().count(), 2);
}

#[test]
fn sound_logs_are_verified_and_compared() {
    let directory = group();
    insta::assert_snapshot!(directory.run(&["log", "verify", "a", "b", "c", "--same"]));
    directory.append("c/domain-0/Track", &[0xd5; 57]);
    insta::assert_snapshot!(directory.run(&["log", "verify", "c", "--json"]));
}

/// Whatever byte of a segment is changed, the log is not taken for sound.
#[test]
fn a_damaged_byte_is_found() {
    let directory = group();
    let segments = directory.segments("a/domain-0/Track");
    assert!(segments.len() > 2, "{segments:?}");
    for (file, len) in &segments {
        for byte in [0, len / 3, len / 2, len - 1] {
            directory.flip(file, byte);
            let said = directory.run(&["log", "verify", "a"]);
            assert!(said.starts_with("exit 1\n"), "{file} {byte}: {said}");
            assert!(
                said.contains(&format!("{file}: byte ")),
                "{file} {byte}: {said}"
            );
            directory.flip(file, byte);
        }
    }
    directory.flip(&segments[1].0, 300);
    insta::assert_snapshot!(directory.run(&["log", "verify", "a", "b", "--same"]));
    directory.flip("b/domain-0/Track/superblock", 20);
    insta::assert_snapshot!(directory.run(&["log", "verify", "b"]));
}

#[test]
fn the_first_difference_is_named() {
    let directory = group();
    let compare = |other: &str| directory.run(&["log", "verify", "a", other, "--same"]);
    directory.write(&Written {
        skipped: 8,
        ..Written::new("lacks", 0xd4, 60)
    });
    directory.write(&Written {
        changed: 11,
        ..Written::new("changed", 0xd5, 60)
    });
    directory.write(&Written {
        generation: 4,
        ..Written::new("other-generation", 0xd6, 60)
    });
    directory.write(&Written {
        lineage: 0xff,
        ..Written::new("other-lineage", 0xd7, 60)
    });
    let others = ["lacks", "changed", "other-generation", "other-lineage"];
    let said = others.map(compare).concat();
    insta::assert_snapshot!(said);
}

#[test]
fn a_damaged_log_is_mended_from_another() {
    let directory = group();
    let before = directory.run(&["log", "cat", "a", "--topic", "Track"]);
    let segments = directory.segments("a/domain-0/Track");
    directory.flip(&segments[1].0, 300);
    let repair = ["log", "repair", "a", "--topic", "Track", "--from", "b"];
    let refused = directory.in_use("a/domain-0", || directory.run(&repair));
    assert!(
        refused.contains("a participant writes these logs"),
        "{refused}"
    );
    insta::assert_snapshot!(directory.run(&repair));
    assert!(directory.exists(&format!("{}.damaged", segments[1].0)));
    assert_eq!(
        directory.run(&["log", "cat", "a", "--topic", "Track"]),
        before
    );
    let verified = directory.run(&["log", "verify", "a", "b", "c", "--same"]);
    assert!(verified.starts_with("exit 0\n"), "{verified}");
    // The other log ends before the damage.
    directory.flip(&segments.last().expect("a segment").0, 120);
    let repair = ["log", "repair", "a", "--topic", "Track", "--from", "c"];
    insta::assert_snapshot!(directory.run(&repair));
    let both = directory.run(&["log", "repair", "a", "b", "--topic", "Track", "--from", "c"]);
    assert!(both.starts_with("exit 2\n"), "{both}");
}

#[test]
fn logs_of_another_lineage_are_set_aside() {
    let directory = group();
    let strange = Written {
        lineage: 0x77,
        ..Written::new("d", 0xd4, 20)
    };
    directory.write(&strange);
    directory.write(&Written {
        topic: "Other",
        ..strange.clone()
    });
    let keep = |directories: &[&str], id: u128, more: &[&str]| {
        let id = log_id(id).to_string();
        let arguments = [&["log", "repair", "--keep", &id], directories, more].concat();
        directory.run(&arguments)
    };
    // A log that none of these knows: which topic?
    let unknown = keep(&["d"], 0x99, &[]);
    assert!(unknown.contains("name the topic with --topic"), "{unknown}");
    let in_use = directory.in_use("d/domain-0", || keep(&["a", "d"], 0xa1, &[]));
    assert!(
        in_use.contains("a participant writes these logs"),
        "{in_use}"
    );
    insta::assert_snapshot!(keep(&["a", "d"], 0xa1, &[]));
    assert!(!directory.exists("d/domain-0/Track"));
    assert!(directory.exists("d/domain-0/Other"));
    // Again; by a log of another host; by the lineage.
    insta::assert_snapshot!(keep(&["a", "d"], 0xa1, &[]));
    directory.write(&strange);
    let again = keep(&["d"], 0x99, &["--topic", "Track"]);
    assert!(again.contains("is there already"), "{again}");
    directory.write(&Written {
        id: 0xd5,
        ..Written {
            name: "e",
            ..strange
        }
    });
    let aside = keep(&["e"], 0x1, &["--topic", "Track"]);
    assert!(
        aside.contains("is set aside as e/set-aside/domain-0/Track."),
        "{aside}"
    );
    let wrong = spindle(directory.path(), &["log", "repair", "a", "--keep", "xyz"]);
    assert!(wrong.starts_with("exit 2\n"), "{wrong}");
}

#[test]
fn what_no_reader_gets_is_removed() {
    let directory = group();
    directory.write(&Written {
        topic: "Alone",
        roster: &[0xe5],
        ..Written::new("a", 0xe5, 200)
    });
    let before = directory.run(&["log", "cat", "a", "--topic", "Alone"]);
    let compact = ["log", "compact", "a"];
    let refused = directory.in_use("a/domain-0", || directory.run(&compact));
    assert!(
        refused.contains("a participant writes these logs"),
        "{refused}"
    );
    insta::assert_snapshot!(directory.run(&compact));
    let verified = directory.run(&["log", "verify", "a"]);
    assert!(verified.starts_with("exit 0\n"), "{verified}");
    let after = directory.run(&["log", "cat", "a", "--topic", "Alone"]);
    assert!(after.lines().count() < 60, "{after}");
    // What is left is as it was, and has the last record of each instance.
    for line in after.lines() {
        assert!(before.contains(line), "{line}");
    }
    for line in before.lines().rev().take(4) {
        assert!(after.contains(line), "{line}");
    }
    let again = directory.run(&["log", "compact", "a", "--topic", "Alone", "--json"]);
    insta::assert_snapshot!(again);
    // A log that was compacted is the same as one that was not.
    directory.write(&Written {
        topic: "Alone",
        roster: &[0xe5],
        ..Written::new("b", 0xe6, 190)
    });
    let same = ["log", "verify", "a", "b", "--same", "--topic", "Alone"];
    let same = directory.run(&same);
    assert!(
        same.contains("2 logs are the same below position"),
        "{same}"
    );
}
