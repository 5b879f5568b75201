//! Types in XML are those that IDL describes in the same way: one TypeIdentifier.

use spindle_dds_idl::type_object::TypeDescriptions;
use spindle_dds_idl::{Options, compile_str};
use spindle_dds_qos::{QosLoader, QosProvider, Severity};
use spindle_dds_xtypes::graph::{Definition, Type};
use spindle_dds_xtypes::object::TypeIdentifier;
use spindle_dds_xtypes::{DynamicType, Value, describe};

fn identifier(ty: &DynamicType) -> TypeIdentifier {
    let Type::Declared(index) = ty.ty() else {
        panic!("{ty:?}");
    };
    let described = describe(ty.graph()).expect("names are short");
    described
        .complete(*index)
        .expect("declared")
        .identifier
        .clone()
}

fn provider(types: &str) -> QosProvider {
    let text = format!("<dds><types>{types}</types></dds>");
    QosProvider::from_str(&text, "types.xml").expect("without errors")
}

/// The structure or union `T` of both texts is the same type.
#[track_caller]
fn check(xml: &str, idl: &str) {
    let of_xml = provider(xml).topic_type("T").expect("a type");
    let compilation = compile_str("types.idl", idl.as_bytes(), &Options::default());
    let model = compilation.ok().expect("IDL");
    let described = TypeDescriptions::of(model).expect("names are short");
    let index = described.graph().find("T").expect("declared");
    let of_idl = described.descriptions().complete(index).expect("described");
    assert_eq!(
        identifier(&of_xml),
        of_idl.identifier,
        "{:#?}",
        of_xml.graph()
    );
}

#[test]
fn members() {
    check(
        "<struct name='T' extensibility='final'>
           <member name='a' type='boolean'/><member name='b' type='byte'/>
           <member name='c' type='int8'/><member name='d' type='uint8'/>
           <member name='e' type='int16'/><member name='f' type='uint16'/>
           <member name='g' type='int32' key='true'/><member name='h' type='uint32'/>
           <member name='i' type='int64'/><member name='j' type='uint64'/>
           <member name='k' type='float32'/><member name='l' type='float64'/>
           <member name='m' type='float128'/><member name='n' type='char8'/>
           <member name='o' type='char16'/>
           <member name='p' type='string'/><member name='q' type='wstring'/>
         </struct>",
        "@final struct T {
           boolean a; octet b; int8 c; uint8 d; short e; unsigned short f; @key long g;
           unsigned long h; long long i; unsigned long long j; float k; double l;
           long double m; char n; wchar o; string p; wstring q;
         };",
    );
    // The words of earlier files.
    check(
        "<struct name='T'>
           <member name='a' type='octet'/><member name='b' type='short'/>
           <member name='c' type='unsignedShort'/><member name='d' type='long'/>
           <member name='e' type='unsignedLong'/><member name='f' type='longLong'/>
           <member name='g' type='unsignedLongLong'/><member name='h' type='float'/>
           <member name='i' type='double'/><member name='j' type='longDouble'/>
           <member name='k' type='char'/><member name='l' type='wchar'/>
         </struct>",
        "struct T {
           octet a; short b; unsigned short c; long d; unsigned long e; long long f;
           unsigned long long g; float h; double i; long double j; char k; wchar l;
         };",
    );
}

#[test]
fn annotations() {
    check(
        "<struct name='T' extensibility='mutable' autoid='hash'>
           <member name='color' type='string' key='true'/>
           <member name='x' type='int32' id='5' optional='true' min='-1' max='10' unit='m'/>
           <member name='y' type='float64' hashid='why' mustUnderstand='true' min='0.5'/>
           <member name='z' type='int32' external='true' tryConstruct='use_default'/>
           <member name='gone' type='int32' nonSerialized='true'/>
         </struct>",
        "@mutable @autoid(HASH) struct T {
           @key string color;
           @id(5) @optional @range(min=-1, max=10) @unit(\"m\") long x;
           @hashid(\"why\") @must_understand @min(0.5) double y;
           @external @try_construct(USE_DEFAULT) long z;
         };",
    );
}

#[test]
fn collections_and_constants() {
    check(
        "<const name='N' type='int32' value='4'/>
         <module name='m'><const name='N' type='uint8' value='2 * ::N + 1'/>
           <const name='M' type='nonBasic' nonBasicTypeName='Index' value='N - 1'/></module>
         <typedef name='Name' type='string' stringMaxLength='(m::N)'/>
         <typedef name='Row' type='int32' sequenceMaxLength='-1'/>
         <struct name='T'>
           <const name='INNER' type='int32' value='0x10'/>
           <member name='a' type='string' stringMaxLength='N'/>
           <member name='b' type='nonBasic' nonBasicTypeName='Name' sequenceMaxLength='m::M'/>
           <member name='c' type='int32' arrayDimensions='2, INNER'/>
           <member name='d' type='nonBasic' nonBasicTypeName='Row' arrayDimensions='3'/>
           <member name='e' type='int16' sequenceMaxLength='5' arrayDimensions='6'/>
           <member name='f' type='float32' mapKeyType='string' mapKeyStringMaxLength='7'
                   mapMaxLength='8'/>
         </struct>",
        "typedef string<9> Name; typedef sequence<long> Row; typedef sequence<short, 5> Shorts;
         struct T {
           string<4> a; sequence<Name, 8> b; long c[2][16]; Row d[3]; sequence<short, 5> e[6];
           map<string<7>, float, 8> f;
         };",
    );
}

#[test]
fn declared_types_in_any_order() {
    check(
        "<struct name='T' baseType='m::Base'>
           <member name='color' type='nonBasic' nonBasicTypeName='m::Color'/>
           <member name='flags' type='nonBasic' nonBasicTypeName='Flags'/>
           <member name='bits' type='nonBasic' nonBasicTypeName='Bits'/>
           <member name='next' type='nonBasic' nonBasicTypeName='T' sequenceMaxLength='1'/>
         </struct>
         <forward_dcl name='T' kind='struct'/>
         <bitmask name='Flags' bitBound='16'><flag name='a'/><flag name='b' position='9'/></bitmask>
         <bitset name='Bits'>
           <bitfield name='x' bitBound='3'/><bitfield bitBound='2'/>
           <bitfield name='y' bitBound='1'/><bitfield name='z' bitBound='9' type='uint32'/>
         </bitset>
         <module name='m'>
           <struct name='Base' extensibility='appendable'>
             <member name='id' type='nonBasic' nonBasicTypeName='Inner' key='true'/>
           </struct>
           <enum name='Color' bitBound='8'>
             <enumerator name='RED' value='1 + 1'/><enumerator name='GREEN'/>
             <enumerator name='BLUE' value='-3' defaultLiteral='true'/>
           </enum>
           <struct name='Inner' nested='true' extensibility='final'>
             <member name='x' type='int32'/>
           </struct>
         </module>",
        "module m {
           @nested @final struct Inner { long x; };
           @bit_bound(8) enum Color { @value(2) RED, GREEN, @value(-3) @default_literal BLUE };
           @appendable struct Base { @key Inner id; };
         };
         @bit_bound(16) bitmask Flags { a, @position(9) b };
         bitset Bits { bitfield<3> x; bitfield<2>; bitfield<1> y; bitfield<9, unsigned long> z; };
         struct T : m::Base {
           m::Color color; Flags flags; Bits bits; sequence<T, 1> next;
         };",
    );
}

#[test]
fn unions() {
    check(
        "<enum name='Color'><enumerator name='RED'/><enumerator name='GREEN'/></enum>
         <union name='T' extensibility='mutable'>
           <discriminator type='nonBasic' nonBasicTypeName='Color' key='true'/>
           <case><caseDiscriminator value='(RED)'/><member name='a' type='int32'/></case>
           <case><caseDiscriminator value='Color::GREEN'/><caseDiscriminator value='default'/>
             <member name='b' type='string' id='9'/></case>
         </union>",
        "enum Color { RED, GREEN };
         @mutable union T switch (@key Color) {
           case RED: long a; case GREEN: default: @id(9) string b;
         };",
    );
    check(
        "<const name='TEN' type='long' value='10'/>
         <union name='T'>
           <discriminator type='long'/>
           <case><caseDiscriminator value='TEN'/><member name='a' type='int32'/></case>
           <case><caseDiscriminator value='-20'/><caseDiscriminator value='0x15'/>
             <member name='b' type='float32'/></case>
           <defaultCase><member name='c' type='boolean'/></defaultCase>
         </union>",
        "union T switch (long) {
           case 10: long a; case -20: case 21: float b; default: boolean c;
         };",
    );
    check(
        "<union name='T'><discriminator type='boolean'/>
           <case><caseDiscriminator value='true'/><member name='a' type='int32'/></case></union>",
        "union T switch (boolean) { case TRUE: long a; };",
    );
    check(
        "<union name='T'><discriminator type='char'/>
           <case><caseDiscriminator value=\"'x'\"/><member name='a' type='int32'/></case></union>",
        "union T switch (char) { case 'x': long a; };",
    );
}

#[test]
fn defaults_are_those_of_the_members() {
    let provider = provider(
        "<const name='HELLO' type='string' value='&quot;hello&quot;'/>
         <const name='HALF' type='float64' value='0.5'/>
         <enum name='Color'><enumerator name='RED'/><enumerator name='BLUE'/></enum>
         <bitmask name='Flags'><flag name='a'/><flag name='b'/></bitmask>
         <typedef name='Whole' type='int32'/>
         <struct name='T'>
           <member name='whole' type='nonBasic' nonBasicTypeName='Whole' default='-12'/>
           <member name='half' type='double' default='HALF'/>
           <member name='text' type='string' default='HELLO'/>
           <member name='color' type='nonBasic' nonBasicTypeName='Color' default='BLUE'/>
           <member name='flags' type='nonBasic' nonBasicTypeName='Flags' default='3'/>
           <member name='plain' type='string' default='as it is'/>
           <member name='yes' type='boolean' default='true'/>
         </struct>",
    );
    let data = provider.topic_type("T").expect("a type").default_data();
    let data = data.expect("a value");
    let expected = [
        ("whole", Value::Int32(-12)),
        ("half", Value::Float64(0.5)),
        ("text", Value::Text("hello".to_owned())),
        ("color", Value::Enum(1)),
        ("flags", Value::Bits(3)),
        ("plain", Value::Text("as it is".to_owned())),
        ("yes", Value::Boolean(true)),
    ];
    for (path, value) in expected {
        assert_eq!(data.get(path), Ok(&value), "{path}");
    }
}

#[test]
fn a_typedef_of_a_structure_is_a_topic_type_and_an_enumeration_is_none() {
    let provider = provider(
        "<enum name='E'><enumerator name='A'/></enum>
         <struct name='S'><member name='a' type='int32'/></struct>
         <typedef name='T' type='nonBasic' nonBasicTypeName='S'/>",
    );
    assert_eq!(provider.type_names(), ["E", "S", "T"]);
    assert_eq!(provider.topic_type("T").expect("a type").name(), Some("S"));
    assert!(provider.topic_type("E").is_none());
    assert!(provider.topic_type("::S").is_some());
}

#[test]
fn files_are_included_once_and_constants_are_found_in_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    write(
        "main.xml",
        "<dds><types><include file='sub/a.xml'/><include file='b.xml'/>
           <struct name='T'><member name='a' type='string' stringMaxLength='LENGTH'/>
             <member name='b' type='nonBasic' nonBasicTypeName='B'/></struct></types></dds>",
    );
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    write(
        "sub/a.xml",
        "<types><include file='../b.xml'/><include file='../main.xml'/>
           <const name='LENGTH' type='long' value='3'/></types>",
    );
    write(
        "b.xml",
        "<types><struct name='B'><member name='x' type='long'/></struct></types>",
    );
    let load = || QosLoader::new().file(folder.path().join("main.xml")).load();
    let provider = load().expect("without errors");
    assert_eq!(provider.type_names(), ["T", "B"]);
    let ty = provider.topic_type("T").expect("a type");
    let index = ty.graph().find("T").expect("declared");
    let Definition::Struct(structure) = &ty.graph().declaration(index).definition else {
        panic!("{ty:?}");
    };
    assert_eq!(structure.members[0].ty, Type::String8(Some(3)));

    std::fs::remove_file(folder.path().join("b.xml")).expect("there");
    let error = load().expect_err("a file is missing").to_string();
    assert!(
        error.contains("main.xml:1:40: error: cannot be included: "),
        "{error}"
    );
}

#[test]
fn elements_of_a_known_product_are_warnings() {
    let text = "<dds xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'
          xsi:noNamespaceSchemaLocation='http://community.rti.com/schema/7.3.0/rti_dds_profiles.xsd'>
        <types><directive kind='copyJava'>x</directive>
          <struct name='T' topLevel='true'>
            <member name='a' type='long' pointer='true' somethingNew='1'/></struct></types></dds>";
    let provider = QosProvider::from_str(text, "t.xml").expect("without errors");
    let remarks = provider.warnings();
    assert_eq!(remarks.len(), 4, "{remarks:?}");
    assert!(remarks.iter().all(|it| it.severity == Severity::Warning));
}

#[test]
fn hostile_types_end() {
    // Structures that inherit from each other over many steps, constants likewise.
    let names = 0..2000;
    let chain: String = names
        .clone()
        .map(|n| format!("<struct name='S{n}' baseType='S{}'/>", n + 1))
        .collect();
    let constants: String = names
        .map(|n| format!("<const name='C{n}' type='long' value='C{} + 1'/>", n + 1))
        .collect();
    for text in [chain, constants] {
        let text = format!("<types>{text}</types>");
        let error = QosProvider::from_str(&text, "t.xml").expect_err("too deep");
        assert!(error.to_string().contains(" steps"), "{error}");
    }
}
