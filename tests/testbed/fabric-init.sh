#!/bin/bash
# First process of a test bed: WORK ADDRESS. Mounts and network disappear when it ends.
set -eu
work=$1 address=$2
mount -t tmpfs -o mode=755 testbed "$work"
mount --make-shared "$work" # nodes see the file systems of later nodes
ip link set lo up
ip link add br0 type bridge
ip addr add "$address" dev br0
ip link set br0 up
ip addr add 169.254.169.254/32 dev br0 # the metadata service, if there is one
ip -6 addr add fd00:ec2::254/32 dev br0 nodad
ip route add default dev br0 # public addresses are on the same link
echo ready
while :; do sleep 3600 & wait $!; done # bash reaps orphaned processes
