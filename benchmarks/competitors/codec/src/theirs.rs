//! The types of `bench.idl` as dust_dds has them. Enumerations of its derive macros are of
//! one byte if they have few literals, so that of the IDL is its number here.

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
    // As a whole, which is their fastest way.
    bytes: ByteBuf,
}

#[derive(Debug, PartialEq, XTypesSerialize, XTypesDeserialize)]
#[dust_dds(extensibility = "Appendable")]
pub(crate) struct Path {
    number: u32,
    points: Vec<Position>,
}
