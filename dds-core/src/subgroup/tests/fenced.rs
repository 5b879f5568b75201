//! What a member does about another one that it has fenced.

use super::*;

#[test]
fn nothing_is_pushed_to_a_fenced_member() {
    let world = one_sender();
    world.run(&[0, 1, 2]);
    let node = &world.nodes[0];
    let pushes = || {
        let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
        let counters = subgroup.fabric().counters();
        counters.pushes + counters.word_pushes
    };
    let for_a_message = || {
        let before = pushes();
        send(node, 1);
        pushes() - before
    };
    let to_both = for_a_message();
    fence(node, 2);
    assert_eq!(2 * for_a_message(), to_both);
}
