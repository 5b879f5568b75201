//! History that is kept, and history that is transferred.

use ratatui::crossterm::event::KeyCode;
use spindle_dds::monitor::TransferFigures;

use super::frames::{crowd_with, frame, long, press};
use super::*;
use crate::top::names::columns;
use crate::top::viewer::Viewer;

fn transfer(donors: &[usize], samples: u64) -> TransferFigures {
    TransferFigures {
        topic: "Square".to_owned(),
        donors: donors.iter().map(|rank| member(*rank)).collect(),
        samples,
        bytes: samples * 2064,
    }
}

/// The writer keeps 1500 samples; two readers of the display and one of the recorder get them.
fn joined(_: u64, all: &mut [ParticipantFigures]) {
    let topic = &mut all[0].topics[0];
    (topic.kept, topic.kept_bytes) = (1500, 1500 * 2064);
    all[1].transfers = vec![transfer(&[0, 2], 900), transfer(&[0], 1200)];
    // All has come, and its reader is full.
    all[2].transfers = vec![transfer(&[], 1500)];
}

/// The words of the lines that begin with this one.
fn rows<'l>(lines: impl Iterator<Item = &'l str>, first: &str) -> Vec<Vec<&'l str>> {
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter(|words| words.first() == Some(&first))
        .collect()
}

#[test]
fn topics_are_shown_with_what_is_kept() {
    let scene = scene(joined);
    let kept: Vec<_> = scene
        .topics
        .iter()
        .map(|it| (it.kept, it.kept_bytes))
        .collect();
    assert_eq!(kept, [(0, 0), (0, 0), (1500, 3_096_000)]);
    let mut viewer = Viewer::default();
    press(&mut viewer, KeyCode::Char('5'));
    (0..30).for_each(|_| press(&mut viewer, KeyCode::Char('>')));
    assert!(frame(&scene, &mut viewer)[23].contains("by kept MB"));
    press(&mut viewer, KeyCode::Char('<'));
    let lines = frame(&scene, &mut viewer);
    assert!(lines[23].contains("by kept   "), "{lines:?}");
    // The most first.
    let first: Vec<&str> = lines[4].split_whitespace().collect();
    assert_eq!(first[..2], ["Square", "writer/100"]);
    assert_eq!(first[first.len() - 2..], ["1500", "3.10"]);
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn transfers_are_shown_with_their_donors() {
    let scene = scene(joined);
    let mut viewer = Viewer::default();
    press(&mut viewer, KeyCode::Char('6'));
    let lines = frame(&scene, &mut viewer);
    let shown = rows(lines.iter().map(String::as_str), "Square");
    assert_eq!(
        shown,
        [
            &["Square", "display/101", "writer/100", "1200", "2.48"][..],
            &[
                "Square",
                "display/101",
                "writer/100,",
                "recorder/102",
                "900",
                "1.86"
            ],
            &["Square", "recorder/102", "-", "1500", "3.10"],
        ]
    );
    insta::assert_snapshot!(lines.join("\n"));
    // By samples: topic, participant, donors, samples.
    (0..3).for_each(|_| press(&mut viewer, KeyCode::Char('>')));
    let lines = frame(&scene, &mut viewer);
    assert!(lines[23].contains("by samples"), "{lines:?}");
    let shown = rows(lines.iter().map(String::as_str), "Square");
    let samples: Vec<&str> = shown.iter().map(|words| words[words.len() - 2]).collect();
    assert_eq!(samples, ["1500", "1200", "900"]);
}

#[test]
fn a_page_and_json_have_the_transfers() {
    let scene = scene(joined);
    let page = page(&scene);
    let section = page.split("\n\n").find(|it| it.starts_with("History"));
    insta::assert_snapshot!(section.expect("the section"));
    let json = serde_json::to_value(&scene).expect("JSON");
    let expected = serde_json::json!({
        "topic": "Square",
        "participant": "display/101",
        "donors": ["writer/100", "recorder/102"],
        "samples": 900,
        "bytes": 1_857_600,
    });
    let told = json["transfers"].as_array().expect("a list");
    assert!(told.contains(&expected), "{told:?}");
    assert_eq!(json["topics"][2]["kept"], 1500);
}

#[test]
fn nothing_is_said_of_history_where_none_is_transferred() {
    let text = page(&scene(|_, _| {}));
    assert!(!text.contains("History"), "{text}");
}

/// Donors that have left the view are named by their ids.
#[test]
fn donors_without_a_name_are_shown_by_their_ids() {
    let scene = scene(|_, all| all[1].transfers = vec![transfer(&[7], 1)]);
    assert_eq!(scene.transfers[0].donors, ["member 7a11"]);
}

#[test]
fn transfers_of_many_donors_with_long_names_leave_room_for_the_numbers() {
    let scene = crowd_with(12, long, |all| {
        let donors: Vec<String> = all.iter().map(|it| it.member.clone()).collect();
        for (number, one) in all.iter_mut().enumerate() {
            one.transfers = vec![TransferFigures {
                topic: one.topics[0].topic.clone(),
                donors: donors[..number].to_vec(),
                samples: 10_000 * number as u64,
                bytes: 12_345_678,
            }];
        }
    });
    let mut viewer = Viewer::default();
    press(&mut viewer, KeyCode::Char('6'));
    let lines = frame(&scene, &mut viewer);
    assert!(lines.iter().all(|line| columns(line) <= 80), "{lines:?}");
    assert!(lines[23].contains("all 2 columns"), "{lines:?}");
    insta::assert_snapshot!(lines.join("\n"));
    let page = page(&scene);
    let more = format!("{} and 10 more", long(0));
    assert!(page.contains(&more), "{page}");
}

#[test]
fn the_help_names_the_columns_of_transfers() {
    let mut viewer = Viewer::default();
    for key in [KeyCode::Char('6'), KeyCode::Char('?'), KeyCode::End] {
        press(&mut viewer, key);
    }
    insta::assert_snapshot!(frame(&Scene::default(), &mut viewer).join("\n"));
}
