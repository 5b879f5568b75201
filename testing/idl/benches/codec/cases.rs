//! The samples and the measured operations.

use std::hint::black_box;
use std::io::Cursor;

use cdr::{CdrLe, Infinite};
use serde::{Deserialize, Serialize};
use spindle_dds_idl_conformance::fixtures::bench::bench::{
    Contact, Contacts, Image, Origin, Path, Position, Samples, Source, State, Track,
};
use spindle_dds_idl_runtime::{CdrError, Representation, TopicType};

use super::{Case, ROOM};

/// All cases by name.
pub(super) const ALL: &[(&str, fn())] = &[
    ("state", state),
    ("track", track),
    ("image", image),
    ("samples", samples),
    ("path", path),
    ("contacts", contacts),
];

/// Elements of the sequences of structures.
const ELEMENTS: usize = 1000;
/// Bytes of the large sequences.
const BYTES: usize = 10 * 1024;

type Built = Result<(usize, spindle_dds_idl_runtime::KeyHash), CdrError>;

/// All operations on `value`: `build` builds it in place, `look` reads all of a view.
fn case<T>(
    name: &'static str,
    value: &T,
    build: impl Fn(T::Builder<&mut [u8]>, &T) -> Built,
    look: impl Fn(T::View<'_>) -> u64,
) where
    T: TopicType + Serialize + for<'d> Deserialize<'d>,
{
    let representation = Representation::Xcdr1;
    let id = T::encapsulation(representation);
    let mut bytes = vec![0; value.size(representation)];
    value.encode(representation, &mut bytes).expect("fits");
    let theirs = cdr::serialize::<_, _, CdrLe>(value, Infinite).expect("serialises");
    assert!(theirs[4..] == bytes, "both write the same");
    let (bytes, theirs) = (&bytes[..], &theirs[..]);

    // Separate memory for each, aligned as in a ring.
    let memory = || vec![0_u128; ROOM / 16];
    fn room(memory: &mut [u128]) -> &mut [u8] {
        spindle_dds_idl_runtime::zerocopy::IntoBytes::as_mut_bytes(memory)
    }
    let mut case = Case::new(name, bytes.len());
    let mut copied = memory();
    case.add("memcpy", None, move || {
        let out = &mut room(&mut copied)[..bytes.len()];
        out.copy_from_slice(black_box(bytes));
        out[0]
    });
    let mut encoded = memory();
    case.add("encode", Some("cdr_serialize"), move || {
        let out = room(&mut encoded);
        let used = black_box(value).encode(representation, out);
        used.expect("fits")
    });
    let mut built = memory();
    case.add("build_in_place", Some("cdr_serialize"), move || {
        let slot = room(&mut built);
        let builder = T::build(slot, representation).expect("fits");
        build(builder, black_box(value)).expect("fits").0
    });
    let mut serialized = memory();
    case.add("cdr_serialize", None, move || {
        let mut out = Cursor::new(room(&mut serialized));
        cdr::serialize_into::<_, _, _, CdrLe>(&mut out, black_box(value), Infinite).expect("fits");
        out.position()
    });
    case.add("decode", Some("cdr_deserialize"), move || {
        T::decode(black_box(bytes), id).expect("decodes")
    });
    let mut received = memory();
    room(&mut received)[..bytes.len()].copy_from_slice(bytes);
    case.add("view", Some("cdr_deserialize"), move || {
        let bytes = &room(&mut received)[..bytes.len()];
        look(T::view(black_box(bytes), id).expect("is valid"))
    });
    case.add("cdr_deserialize", None, move || {
        cdr::deserialize::<T>(black_box(theirs)).expect("deserialises")
    });
    case.measure();
}

fn position(index: usize) -> Position {
    Position {
        lat: 50.0 + index as f64,
        lon: 8.0,
        altitude: 100.0,
    }
}

fn sum(position: &Position) -> u64 {
    (position.lat + position.lon + position.altitude).to_bits()
}

fn state() {
    let value = State {
        number: 1,
        stamp: 2,
        lat: 3.0,
        lon: 4.0,
        altitude: 5.0,
        valid: true,
    };
    case(
        "state",
        &value,
        |mut builder, value| {
            builder
                .set_number(value.number)
                .set_stamp(value.stamp)
                .set_lat(value.lat)
                .set_lon(value.lon)
                .set_altitude(value.altitude)
                .set_valid(value.valid);
            builder.publish()
        },
        |view| {
            u64::from(view.number())
                + view.stamp() as u64
                + (view.lat() + view.lon() + f64::from(view.altitude())).to_bits()
                + u64::from(view.valid())
        },
    );
}

fn track() {
    let value = Track {
        number: 7,
        origin: Origin {
            source: Source::ADSB,
            site: 3,
            at: position(1),
            station: "EDDF-1".into(),
        },
        at: position(2),
        speed: position(3),
        callsign: "DLH 123".into(),
        flags: 1,
    };
    case(
        "track",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            let mut builder = builder.origin_with(|mut origin| {
                origin
                    .set_source(value.origin.source)
                    .set_site(value.origin.site)
                    .set_at(&value.origin.at);
                origin.station(&value.origin.station)
            })?;
            builder.set_at(&value.at).set_speed(&value.speed);
            let mut builder = builder.callsign(&value.callsign)?;
            builder.set_flags(value.flags);
            builder.publish()
        },
        |view| {
            let origin = view.origin();
            let at = |at: spindle_dds_idl_conformance::fixtures::bench::bench::PositionView<'_>| {
                (at.lat() + at.lon() + at.altitude()).to_bits()
            };
            u64::from(view.number())
                + u64::from(origin.site())
                + u64::from(origin.source() == Source::ADSB)
                + at(origin.at())
                + origin.station().len() as u64
                + at(view.at())
                + at(view.speed())
                + view.callsign().len() as u64
                + u64::from(view.flags())
        },
    );
}

fn image() {
    let value = Image {
        number: 1,
        bytes: (0..BYTES).map(|index| index as u8).collect(),
    };
    case(
        "image",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            builder.bytes(&value.bytes)?.publish()
        },
        |view| u64::from(view.number()) + view.bytes().iter().copied().map(u64::from).sum::<u64>(),
    );
}

fn samples() {
    let value = Samples {
        number: 1,
        values: (0..BYTES / 8).map(|index| index as f64).collect(),
    };
    case(
        "samples",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            builder.values(&value.values)?.publish()
        },
        |view| u64::from(view.number()) + view.values().iter().sum::<f64>().to_bits(),
    );
    case(
        "samples_made",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            builder
                .values_from(value.values.len(), |index| value.values[index])?
                .publish()
        },
        |view| {
            let values = view.values();
            let values = values.as_slice().expect("lies as in memory");
            u64::from(view.number()) + values.iter().sum::<f64>().to_bits()
        },
    );
}

fn path() {
    let value = Path {
        number: 1,
        points: (0..ELEMENTS).map(position).collect(),
    };
    case(
        "path",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            builder.points(&value.points)?.publish()
        },
        |view| {
            let points = view.points();
            let points = points.as_slice().expect("lies as in memory");
            points.iter().map(sum).fold(0, u64::wrapping_add)
        },
    );
    case(
        "path_one_by_one",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            builder
                .points_with(|points| {
                    for point in &value.points {
                        points
                            .add()?
                            .set_lat(point.lat)
                            .set_lon(point.lon)
                            .set_altitude(point.altitude);
                    }
                    Ok(())
                })?
                .publish()
        },
        |view| {
            let points = view.points().iter();
            points
                .map(|point| (point.lat() + point.lon() + point.altitude()).to_bits())
                .fold(0, u64::wrapping_add)
        },
    );
}

fn contacts() {
    let contact = |index: usize| Contact {
        number: index as u32,
        bearing: index as f64,
        source: Source::RADAR,
        valid: index.is_multiple_of(2),
    };
    let value = Contacts {
        number: 1,
        contacts: (0..ELEMENTS).map(contact).collect(),
    };
    case(
        "contacts",
        &value,
        |mut builder, value| {
            builder.set_number(value.number);
            builder
                .contacts_with(|contacts| {
                    for contact in &value.contacts {
                        contacts
                            .add()?
                            .set_number(contact.number)
                            .set_bearing(contact.bearing)
                            .set_source(contact.source)
                            .set_valid(contact.valid);
                    }
                    Ok(())
                })?
                .publish()
        },
        |view| {
            let contacts = view.contacts().iter();
            contacts
                .map(|contact| {
                    u64::from(contact.number())
                        + contact.bearing().to_bits()
                        + u64::from(contact.source() == Source::RADAR)
                        + u64::from(contact.valid())
                })
                .fold(0, u64::wrapping_add)
        },
    );
}
