#!/bin/bash
# First process of a test bed: WORK ADDRESS. Mounts and network live as long as it does.
set -eu
work=$1 address=$2
mount -t tmpfs -o mode=755 testbed "$work"
mount --make-shared "$work" # a node sees the file systems of nodes made after it
ip link set lo up
ip link add br0 type bridge
ip addr add "$address" dev br0
ip link set br0 up
ip route add default dev br0 # public addresses are on the same wire
echo ready
while :; do sleep 3600 & wait $!; done # bash reaps what is left to it
