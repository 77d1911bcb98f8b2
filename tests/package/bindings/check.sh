#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the language bindings of models: check.sh LANGUAGE AMP_FOLDER SMALL_FOLDER WEIGHTS_SCRIPT
set -eu
language=$1 amp=$(cd "$2" && pwd) small=$(cd "$3" && pwd) script=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/amp_test.* "$amp"/amp.py "$amp"/amp.rs "$amp"/libamp.so "$small"/small.py "$small"/small.rs "$small"/libsmall.so "$work"
cp "$script" "$work/weights.py"
cd "$work"
python3 weights.py amp.safetensors >/dev/null
LD_LIBRARY_PATH=$work
export LD_LIBRARY_PATH
if [ "$language" = python ]; then
  python3 -W error amp_test.py amp.safetensors
  python3 -W error -c 'import small; model = small.Model(); print([name for name in dir(small.Session) if name == "forward"])'
else
  command -v rustc >/dev/null || { echo "skipped: there is no rustc"; exit 77; }
  rustc --edition 2021 -D warnings -L . -l amp amp_test.rs -o amp_test
  ./amp_test amp.safetensors
  printf 'mod small;\nfn main() { assert!(small::Model::new().is_ok()); }\n' >both.rs
  rustc --edition 2021 -D warnings -L . -l small both.rs -o both
  ./both
fi
