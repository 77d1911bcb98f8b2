#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# emulate.sh COMMAND ...: runs a command in which programs for aarch64 run by qemu. The machine's own list of interpreters
# stays as it is: a user namespace has a list to itself, since Linux 6.7. Needs root, and Debian's qemu-user-static.
set -eu
emulator=$(command -v qemu-aarch64-static)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/mapped"

# ELF of 64 bits for machine 183. F opens the emulator now, so that it is there after chroot.
zeros='\x00\x00\x00\x00\x00\x00\x00\x00' ones='\xff\xff\xff\xff\xff\xff\xff'
rule=":aarch64:M::\\x7fELF\\x02\\x01\\x01\\x00$zeros\\x02\\x00\\xb7\\x00:$ones\\x00$ones\\xff\\xfe\\xff\\xff\\xff:$emulator:POCF"
unshare --user --mount --pid --fork --kill-child --propagation private sh -euc '
  read -r mapped <"$0"
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  printf %s "$1" >/proc/sys/fs/binfmt_misc/register
  shift
  exec "$@"' "$work/mapped" "$rule" "$@" &
child=$!
until [ "$(readlink /proc/$child/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.1; done
# All users and groups are themselves there.
for map in uid_map gid_map; do echo "0 0 65536" >/proc/$child/$map; done
echo yes >"$work/mapped"
wait $child
