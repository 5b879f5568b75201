//! A record as a line of JSON.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use spindle_dds::idl::Encapsulation;
use spindle_dds::log::{LoggedRecord, MessageKind, RecordMeta};
use spindle_dds::xtypes::graph::{Definition, Type};
use spindle_dds::xtypes::{DynamicData, DynamicType, TypeGraph};

use super::timestamp::Timestamp;

/// A record.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    position: u64,
    writer: String,
    sequence: u64,
    timestamp: String,
    kind: &'static str,
    #[serde(flatten)]
    payload: Payload,
}

/// What it carries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Payload {
    Sample(DynamicData),
    /// Of a message that disposes of an instance or unregisters it: the key members.
    Key(Value),
    #[serde(untagged)]
    Bytes {
        payload_hex: String,
        encapsulation: u16,
        /// Why they are not of the type.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

impl Line {
    /// A record of a log, whose samples are of this type if it is known.
    pub(super) fn new(logged: &LoggedRecord, ty: Option<&DynamicType>) -> Self {
        let (meta, payload) = (logged.record.meta(), logged.record.payload());
        let bytes = |error| Payload::Bytes {
            payload_hex: hex(payload),
            encapsulation: meta.encapsulation,
            error,
        };
        Self {
            position: meta.position,
            writer: hex(&meta.writer),
            sequence: meta.sequence,
            timestamp: Timestamp(meta.timestamp).to_string(),
            kind: kind(meta.kind),
            payload: match ty {
                None => bytes(None),
                Some(ty) => decode(ty, &meta, payload).unwrap_or_else(|error| bytes(Some(error))),
            },
        }
    }
}

fn kind(kind: MessageKind) -> &'static str {
    match kind {
        MessageKind::Data => "data",
        MessageKind::Dispose => "dispose",
        MessageKind::Unregister => "unregister",
        MessageKind::DisposeUnregister => "dispose_unregister",
        MessageKind::Control => "control",
    }
}

fn decode(ty: &DynamicType, meta: &RecordMeta, payload: &[u8]) -> Result<Payload, String> {
    let encapsulation = Encapsulation(meta.encapsulation);
    let is_data = meta.kind == MessageKind::Data;
    let data = match is_data {
        true => ty.decode(payload, encapsulation),
        false => ty.decode_key(payload, encapsulation),
    };
    let data = data.map_err(|error| error.to_string())?;
    if is_data {
        return Ok(Payload::Sample(data));
    }
    let value = serde_json::to_value(&data).map_err(|error| error.to_string())?;
    Ok(Payload::Key(key_members(ty.graph(), ty.ty(), value)))
}

/// The key members of a sample: the others have no meaning.
fn key_members(graph: &TypeGraph, ty: &Type, value: Value) -> Value {
    let Value::Object(mut members) = value else {
        return value;
    };
    let keys = key_types(graph, ty);
    // A key of a type without key members counts as a whole.
    if !keys.is_empty() {
        let names: Vec<String> = keys.iter().map(|(name, _)| name.clone()).collect();
        members.retain(|name, _| names.contains(name));
        for (name, ty) in keys {
            if let Some(value) = members.get_mut(&name) {
                *value = key_members(graph, ty, value.take());
            }
        }
    }
    Value::Object(members)
}

/// Names and types of the key members of a type.
fn key_types<'g>(graph: &'g TypeGraph, ty: &'g Type) -> Vec<(String, &'g Type)> {
    let Type::Declared(index) = graph.resolved(ty) else {
        return Vec::new();
    };
    match &graph.declaration(*index).definition {
        Definition::Struct(structure) => {
            let keys = graph.members(structure).into_iter().filter(|it| it.key);
            keys.map(|it| (it.name.to_string(), &it.ty)).collect()
        }
        Definition::Union(union) if union.discriminator.key => {
            vec![("discriminator".to_owned(), &union.discriminator.ty)]
        }
        _ => Vec::new(),
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
