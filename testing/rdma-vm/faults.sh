# shellcheck shell=bash
# Faults of the guest's network: sourced by scripts that run in it, as root.
#
#   node_loss I LOSS [DELAY]   loses and delays packets that node I sends: `node_loss 2 2% 2ms`;
#                              `node_loss I 0%` ends it
#   cut_off I                  drops packets from and to node I
#   cut_between I J            drops packets between I and J
#   heal I                     ends all cuts of I
#   heal_all                   ends all cuts
#
# Packets are dropped in the bridge, so both sides notice only silence, as with a broken cable,
# and no error of their own network layer, after which Soft-RoCE would retry without end. Needs tc (iproute2) and nft (nftables).

node_loss() {
    modprobe sch_netem || return
    if [[ $2 == 0% && ${3:-0ms} == 0ms ]]; then
        tc qdisc del dev "n$1" root 2>/dev/null || true
        return 0
    fi
    # The limit counts delayed packets: none must be lost because of it.
    tc qdisc replace dev "n$1" root netem limit 100000 loss "$2" delay "${3:-0ms}"
}

# Adds a rule, with a comment by which heal finds it.
drop() {
    if ! nft list table bridge spindle >/dev/null 2>&1; then
        nft 'add table bridge spindle' || return
        nft 'add chain bridge spindle cut { type filter hook forward priority 0; }' || return
    fi
    nft "add rule bridge spindle cut $1 drop comment \"$2\""
}

cut_off() {
    drop "iifname p$1" "of $1" && drop "oifname p$1" "of $1"
}

cut_between() {
    drop "iifname p$1 oifname p$2" "of $1, of $2" && drop "iifname p$2 oifname p$1" "of $1, of $2"
}

heal() {
    local handle
    nft -a list chain bridge spindle cut 2>/dev/null |
        sed -n "s/.*comment \".*of $1\(,.*\)\{0,1\}\".*handle \([0-9]*\)\$/\2/p" |
        while read -r handle; do
            nft delete rule bridge spindle cut handle "$handle" || return
        done
}

heal_all() {
    nft delete table bridge spindle 2>/dev/null || true
}
