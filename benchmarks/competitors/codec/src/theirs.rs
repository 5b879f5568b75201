//! The types of `bench.idl` for dust_dds. Its derive macros encode an enumeration with few literals
//! in one byte, so the enumeration of the IDL is an `i32` here.

use dust_dds::xtypes::bytes::ByteBuf;
use dust_dds::xtypes::deserialize::XTypesDeserialize;
use dust_dds::xtypes::serialize::XTypesSerialize;

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Final")]
pub(crate) struct State {
    number: u32,
    stamp: i64,
    lat: f64,
    lon: f64,
    altitude: f32,
    valid: bool,
}

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Final")]
pub(crate) struct Position {
    lat: f64,
    lon: f64,
    altitude: f64,
}

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Appendable")]
pub(crate) struct Origin {
    source: i32,
    site: u8,
    at: Position,
    station: String,
}

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Appendable")]
pub(crate) struct Track {
    number: u32,
    origin: Origin,
    at: Position,
    speed: Position,
    callsign: String,
    flags: u8,
}

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Appendable")]
pub(crate) struct Image {
    number: u32,
    // Encoded as a whole, which is the fastest in dust_dds.
    bytes: ByteBuf,
}

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Appendable")]
pub(crate) struct Path {
    number: u32,
    points: Vec<Position>,
}
