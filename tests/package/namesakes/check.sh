#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two different models with the same name in one process: check.sh NARROW_FOLDER WIDE_FOLDER CXX [EMULATOR ...]. A host
# that exports its symbols, as hosts of plug-ins do, contains one of them or none; plug-ins contain one each. They are
# opened RTLD_LOCAL and RTLD_GLOBAL, in both orders, and each must compute with its own library. One plug-in is C++17,
# one C++20.
set -eu
narrow=$1 wide=$2 cxx=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-O0 -fPIC -Wall -Wextra -Werror"

for plugin in narrow wide; do
  eval folder=\$$plugin
  width=64 standard=17
  [ $plugin = narrow ] || width=96 standard=20
  $cxx -std=c++$standard $flags -shared -DWIDTH=$width -DSUM=plugin_sum -I"$folder" "$here/call.cpp" "$folder/libnet.a" -lm -o "$work/$plugin.so"
  nm -D --defined-only "$work/$plugin.so" | awk '{ print $NF }' | grep -E '^(net_|_ZNK?3net|_ZNK?4kiln)' >"$work/exported" || true
  if [ -s "$work/exported" ]; then
    echo "a plug-in must export nothing of its library; got:" >&2
    head -5 "$work/exported" >&2
    exit 1
  fi
  $cxx -std=c++20 $flags -rdynamic -DWIDTH=$width -DSUM=host_sum -I"$folder" "$here/call.cpp" "$here/host.cpp" "$folder/libnet.a" -lm -ldl \
    -o "$work/host_$plugin"
done
$cxx -std=c++20 $flags -rdynamic "$here/host.cpp" -ldl -o "$work/host_none"

tried=0
for host in none narrow wide; do
  for mode in local global; do
    for order in "narrow 64 wide 96" "wide 96 narrow 64"; do
      words=""
      for word in $order; do
        case $word in
        [0-9]*) words="$words $word" ;;
        *) words="$words $work/$word.so" ;;
        esac
      done
      "$@" "$work/host_$host" $mode $words || { echo "host $host, $mode, $order" >&2; exit 1; }
      tried=$((tried + 1))
    done
  done
done
echo "$tried hosts and orders"
