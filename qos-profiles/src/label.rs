//! Enumerations that carry the labels of the standard's IDL.

/// An enumeration whose values have a label in the standard's IDL.
pub(crate) trait Labelled: Copy + Sized + 'static {
    /// Every value, in the order of the IDL.
    const VALUES: &'static [Self];

    /// The IDL label of this value.
    fn idl_label(self) -> &'static str;
}

/// Declares an enumeration together with its IDL labels.
macro_rules! labelled_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$value_meta:meta])* $value:ident = $label:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$value_meta])* $value, )+
        }

        impl $name {
            /// Every value, in the order of the standard's IDL.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];

            /// The label that the standard's IDL, and so DDS-XML, gives this value.
            pub const fn label(self) -> &'static str {
                match self {
                    $( Self::$value => $label, )+
                }
            }
        }

        impl $crate::label::Labelled for $name {
            const VALUES: &'static [Self] = Self::ALL;

            fn idl_label(self) -> &'static str {
                self.label()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.label())
            }
        }
    };
}

pub(crate) use labelled_enum;
