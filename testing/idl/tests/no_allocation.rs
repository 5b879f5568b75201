//! Builders, views and key hashes allocate nothing.

use spindle_dds_idl_conformance::fixtures::arrays::arrays::Pointers;
use spindle_dds_idl_conformance::fixtures::flight::common::Position;
use spindle_dds_idl_conformance::fixtures::flight::flight::Track;
use spindle_dds_idl_conformance::fixtures::layouts::layouts::KeyText;
use spindle_dds_idl_conformance::fixtures::members::maps::Final;
use spindle_dds_idl_conformance::fixtures::nested::nested::{Kind, MutablePlan};
use spindle_dds_idl_conformance::fixtures::plain::plain::Board;
use spindle_dds_idl_conformance::fixtures::unions::unions::{MutableUnion, MutableUnionView};
use spindle_dds_idl_conformance::memory::{Counting, allocations};
use spindle_dds_idl_runtime::{Representation, TopicType};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(Box::new(1))) > 0);
}

#[test]
fn building_viewing_and_hashing() {
    let path = vec![
        Position {
            lat: 1.0,
            lon: 2.0,
            alt: 3.0
        };
        5
    ];
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut memory = [0xaa; 1000];
        let count = allocations(|| {
            let mut builder = Track::build(&mut memory[..], representation).expect("fits");
            builder.set_id(7).set_position(&path[0]);
            let builder = builder.callsign("D-ABCD").expect("fits");
            let mut builder = builder.speed(&[1.0, 2.0]).expect("fits");
            builder.set_digest(&[9; 16]);
            let builder = builder.path(&path).expect("fits");
            let builder = builder
                .image_with(100, |image| image.fill(3))
                .expect("fits");
            let (used, key) = builder.publish().expect("fits");

            let id = Track::encapsulation(representation);
            let view = Track::view(&memory[..used], id).expect("is valid");
            assert_eq!(view.callsign(), "D-ABCD");
            assert_eq!(view.speed().iter().sum::<f32>(), 3.0);
            assert_eq!(
                view.path()
                    .iter()
                    .map(|position| position.lon())
                    .sum::<f64>(),
                10.0
            );
            assert_eq!(view.image().len(), 100);
            assert_eq!(view.key_hash(), key);
        });
        assert_eq!(count, 0, "{representation:?}");
    }
}

#[test]
fn encoding_and_digests() {
    let value = KeyText {
        name: "a key that is longer than sixteen bytes".into(),
        x: 1,
    };
    let mut memory = [0; 100];
    let count = allocations(|| {
        value
            .encode(Representation::Xcdr2, &mut memory)
            .expect("fits");
        assert_ne!(value.key_hash().0, [0; 16]);
    });
    assert_eq!(count, 0);
}

/// Values behind pointers and their defaults, and arrays, which are changed in place.
#[test]
fn pointers_and_arrays() {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut memory = [0xaa; 2000];
        let count = allocations(|| {
            let mut builder = Pointers::build(&mut memory[..], representation).expect("fits");
            builder.deep().get(2).expect("is an element").set_n(5);
            builder.far().get(1).expect("is an element").set_c(3);
            let (used, _) = builder.publish().expect("fits");

            let id = Pointers::encapsulation(representation);
            let view = Pointers::view(&memory[..used], id).expect("is valid");
            assert_eq!(view.deep().iter().nth(1).map(|one| one.n()), Some(7));
            assert_eq!(view.deep().iter().nth(2).map(|one| one.n()), Some(5));
            assert_eq!(view.far().iter().nth(1).map(|one| one.c()), Some(3));
            assert_eq!(view.told(), "told");
        });
        assert_eq!(count, 0, "{representation:?}");
    }
}

#[test]
fn unions() {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut memory = [0xaa; 100];
        let count = allocations(|| {
            let builder = MutableUnion::build(&mut memory[..], representation).expect("fits");
            let builder = builder.text(2, "in place").expect("fits");
            let (used, key) = builder.publish().expect("fits");

            let id = MutableUnion::encapsulation(representation);
            let view = MutableUnion::view(&memory[..used], id).expect("is valid");
            assert!(matches!(*view, MutableUnionView::text(2, "in place")));
            assert_eq!(view.key_hash(), key);
        });
        assert_eq!(count, 0, "{representation:?}");
    }
}

#[test]
fn nested_builders_and_what_is_lent() {
    let keys = [3, 1, 2];
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut memory = [0xaa; 4000];
        let count = allocations(|| {
            let mut builder = MutablePlan::build(&mut memory[..], representation).expect("fits");
            builder.origin().at().set_x(1.0);
            builder.set_id(1).set_gap(2).set_tail(3);
            let used = builder
                .waypoints_with(|list| {
                    for number in 0..3 {
                        list.push_with(|mut item| {
                            item.set_number(number);
                            item.name("name")?.outline_with(|outline| {
                                outline.add()?.set_x(2.0).set_y(3.0);
                                Ok(())
                            })
                        })?;
                    }
                    Ok(())
                })
                .and_then(|b| b.legs_with(|legs| legs.push_list(|_| Ok(()))))
                .and_then(|b| b.last_with(|last| last.name("")?.outline(&[])))
                .and_then(|b| b.far_with(|far| far.name("")?.outline(&[])))
                .and_then(|b| {
                    b.remark_with(|mut remark| {
                        remark.set_kind(Kind::OVERFLY);
                        remark.text("")?.values_from(3, |index| index as f64)
                    })
                })
                .and_then(|b| {
                    b.ends_with(|ends| {
                        ends.push_with(|end| end.name("")?.outline(&[]))?;
                        ends.push_with(|end| end.name("")?.outline(&[]))
                    })
                })
                .and_then(|b| {
                    b.pair_with(|rows| {
                        for _ in 0..2 {
                            rows.push_list(|row| row.extend(["a", "b"]))?;
                        }
                        Ok(())
                    })
                })
                .and_then(|b| b.fixes(&[]))
                .and_then(|b| b.tags_with(|tags| tags.push("tag")))
                .and_then(|b| b.remarks(&[]))
                .and_then(|b| b.levels_with(2, |mut levels| levels.fill(7)))
                .and_then(|b| b.times(&[]))
                .and_then(|b| b.marks(&[true]))
                .and_then(|b| b.image_with(100, |image| image.fill(1)))
                .and_then(|b| b.publish())
                .expect("fits")
                .0;
            let id = MutablePlan::encapsulation(representation);
            let view = MutablePlan::view(&memory[..used], id).expect("is valid");
            assert_eq!(view.waypoints().len(), 3);
            assert_eq!(view.remark().author(), "none");
        });
        assert_eq!(count, 0, "{representation:?}");

        let mut memory = [0xaa; 400];
        let count = allocations(|| {
            let builder = Final::build(&mut memory[..], representation).expect("fits");
            let refused = builder.table_with(|table| {
                for key in keys {
                    table.insert(&key, &1.0)?;
                }
                table.insert(&keys[0], &1.0)
            });
            assert!(refused.is_err());
            let mut builder = Board::build(&mut memory[..], representation).expect("fits");
            builder.set_sign(4);
            let (used, _) = builder.publish().expect("fits");
            let id = Board::encapsulation(representation);
            let view = Board::view(&memory[..used], id).expect("is valid");
            assert_eq!(view.as_struct().map_or(4, |board| board.sign), 4);
        });
        assert_eq!(count, 0, "{representation:?}");
    }
}
