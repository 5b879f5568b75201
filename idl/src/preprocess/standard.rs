//! Included files of other compilers' libraries, known by name.
//!
//! TAO and OpenDDS have files with the sequences of CORBA's basic types:
//! `tao/LongSeq.pidl` declares `CORBA::LongSeq`, and so on; `orb.idl` includes them
//! all. If such a file is not found on the disk, the declarations of this table
//! replace it. They lack the rest of CORBA (`Any`, `TypeCode`, the interfaces of an
//! ORB).

/// The first part of the paths of such files.
pub(crate) const PREFIX: &str = "<built-in>";

const SEQUENCES: &[(&str, &str)] = &[
    ("BooleanSeq", "boolean"),
    ("CharSeq", "char"),
    ("DoubleSeq", "double"),
    ("FloatSeq", "float"),
    ("Int8Seq", "int8"),
    ("LongDoubleSeq", "long double"),
    ("LongLongSeq", "long long"),
    ("LongSeq", "long"),
    ("OctetSeq", "octet"),
    ("ShortSeq", "short"),
    ("StringSeq", "string"),
    ("UInt8Seq", "uint8"),
    ("ULongLongSeq", "unsigned long long"),
    ("ULongSeq", "unsigned long"),
    ("UShortSeq", "unsigned short"),
    ("WCharSeq", "wchar"),
    ("WStringSeq", "wstring"),
];

/// The text of the file with this name, which has no directory.
pub(super) fn text(name: &str) -> Option<String> {
    let name = name.strip_prefix("tao/").unwrap_or(name);
    if matches!(name, "orb.idl" | "corba.idl") {
        let mut text = String::from("#pragma once\n");
        for (sequence, _) in SEQUENCES {
            text.push_str(&format!("#include <tao/{sequence}.pidl>\n"));
        }
        return Some(text);
    }
    let sequence = name.strip_suffix(".pidl")?;
    let (_, element) = SEQUENCES.iter().find(|(name, _)| *name == sequence)?;
    Some(format!(
        "#pragma once\nmodule CORBA {{ typedef sequence<{element}> {sequence}; }};\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn files_are_known_by_name() {
        let long = text("tao/LongSeq.pidl").unwrap_or_default();
        assert!(long.contains("typedef sequence<long> LongSeq;"));
        assert_eq!(text("tao/AnySeq.pidl"), None);
        assert_eq!(text("LongSeq.idl"), None);
        let all = text("orb.idl").unwrap_or_default();
        assert!(all.contains("#include <tao/WStringSeq.pidl>"));
    }
}
