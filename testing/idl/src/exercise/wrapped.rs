//! Shapes around the shape of a value.

use spindle_dds_idl_runtime::shape::{Boxed, Optional, OrDefault, Shape, Trim, Trimmable};

use super::ExerciseShape;
use crate::random::Random;

impl<S: ExerciseShape> ExerciseShape for Optional<S> {
    fn any(random: &mut Random) -> Option<S::Owned> {
        random.present().then(|| S::any(random))
    }

    fn same(shown: Option<S::Shown<'_>>, owned: &Option<S::Owned>) -> bool {
        match (shown, owned) {
            (Some(shown), Some(owned)) => S::same(shown, owned),
            (shown, owned) => shown.is_none() && owned.is_none(),
        }
    }
}

impl<S: ExerciseShape> ExerciseShape for Boxed<S> {
    fn any(random: &mut Random) -> Box<S::Owned> {
        Box::new(S::any(random))
    }

    fn same(shown: S::Shown<'_>, owned: &Box<S::Owned>) -> bool {
        S::same(shown, owned)
    }
}

impl<S: ExerciseShape> ExerciseShape for OrDefault<S> {
    fn any(random: &mut Random) -> S::Owned {
        S::any(random)
    }

    fn same(shown: <Self as Shape>::Shown<'_>, owned: &S::Owned) -> bool {
        S::same(shown, owned)
    }
}

impl<S: ExerciseShape + Trimmable> ExerciseShape for Trim<S> {
    fn any(random: &mut Random) -> S::Owned {
        S::any(random)
    }

    fn same(shown: <Self as Shape>::Shown<'_>, owned: &S::Owned) -> bool {
        S::same(shown, owned)
    }
}
