//! DATA_REPRESENTATION, and the representations that a type allows (`@data_representation`,
//! XTypes 1.3 §7.3.1.2 and §7.6.3.1.1).

use spindle_dds_idl_runtime::Representation;
use spindle_dds_qos::{DataRepresentation, DataRepresentationId};

use crate::error::{Error, Result};

/// Refuses a policy that lists a representation that the type of this name does not allow. (Those
/// that are not supported at all have been refused before.)
pub(crate) fn check(
    type_name: &str,
    allowed: &[Representation],
    policy: &DataRepresentation,
) -> Result<()> {
    let allowed: Vec<_> = allowed.iter().map(|one| id(*one)).collect();
    let Some(refused) = policy.value.iter().find(|listed| !allowed.contains(listed)) else {
        return Ok(());
    };
    let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    Err(Error::InconsistentPolicy(format!(
        "DATA_REPRESENTATION lists {refused}; by its @data_representation the type {type_name} \
         allows {}",
        names.join(", ")
    )))
}

/// As [`check`]. If the policy lists nothing, and the type does not allow the default
/// representation, the policy is set to the first one that the type allows.
pub(crate) fn settle(
    type_name: &str,
    allowed: &[Representation],
    policy: &mut DataRepresentation,
) -> Result<()> {
    check(type_name, allowed, policy)?;
    if let Some(first) = allowed.first().map(|first| id(*first))
        && first != policy.written()
        && policy.value.is_empty()
    {
        *policy = first.into();
    }
    Ok(())
}

const fn id(representation: Representation) -> DataRepresentationId {
    match representation {
        Representation::Xcdr1 => DataRepresentationId::Xcdr1,
        Representation::Xcdr2 => DataRepresentationId::Xcdr2,
    }
}
