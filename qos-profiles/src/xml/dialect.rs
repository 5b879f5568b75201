//! Which product's schema or namespace an element is of.
//!
//! A file of a known product may have elements of that product that no table of ours lists: a
//! newer version adds some. They are passed over with a warning, as those in the table are.

use crate::xml::vendor;

/// The namespaces that are declared at the place that is being read.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// The depth of the declaration, the prefix, and the product that it is of.
    declared: Vec<(usize, String, Option<&'static str>)>,
}

impl Namespaces {
    /// Takes an attribute of the element at `depth`: `xmlns`, or one with a prefix.
    pub(crate) fn declare(&mut self, depth: usize, attribute: &str, uri: &str) {
        let product = vendor::of_uri(uri);
        let prefix = match attribute.split_once(':') {
            None => "",
            Some(("xmlns", prefix)) => prefix,
            // A schema is of the elements without prefix. If it is of no known product, the
            // namespace decides.
            Some((_, "schemaLocation" | "noNamespaceSchemaLocation")) if product.is_some() => "",
            Some(_) => return,
        };
        self.declared.push((depth, prefix.to_owned(), product));
    }

    /// The product that an element with this prefix is of.
    pub(crate) fn dialect(&self, prefix: &str) -> Option<&'static str> {
        let of = |prefix: &str| {
            let mut inner = self.declared.iter().rev();
            inner.find(|(_, known, _)| known == prefix)?.2
        };
        of(prefix).or_else(|| of(""))
    }

    /// Forgets what the element at `depth` has declared.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.declared.retain(|(declared, ..)| *declared < depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_or_the_namespace_says_the_product() {
        let mut names = Namespaces::default();
        assert_eq!(names.dialect(""), None);
        names.declare(0, "xmlns", "http://www.omg.org/spec/DDS-XML");
        names.declare(0, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
        assert_eq!(names.dialect(""), None);
        let schema = "http://community.rti.com/schema/7.3.0/rti_dds_qos_profiles.xsd";
        names.declare(0, "xsi:noNamespaceSchemaLocation", schema);
        assert_eq!(names.dialect(""), Some("RTI Connext"));
        names.declare(1, "xmlns:fast", "http://www.eprosima.com");
        assert_eq!(names.dialect("fast"), Some("Fast DDS"));
        assert_eq!(names.dialect("xsi"), Some("RTI Connext"));
        names.leave(1);
        assert_eq!(names.dialect("fast"), Some("RTI Connext"));
        names.leave(0);
        assert_eq!(names.dialect(""), None);
    }
}
