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
# The same weights under longer names, and a tensor that the model does not have.
python3 - <<'PY'
import json
import struct

data = open("amp.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, weights = json.loads(data[8 : 8 + size]), data[8 + size :]
renamed = {"module." + name: tensor for name, tensor in header.items() if name != "__metadata__"}
renamed["extra"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(weights), len(weights) + 4]}
text = json.dumps(renamed).encode()
text += b" " * (-len(text) % 8)
open("renamed.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + weights + bytes(4))
PY
LD_LIBRARY_PATH=$work
export LD_LIBRARY_PATH
if [ "$language" = python ]; then
  python3 -W error amp_test.py amp.safetensors renamed.safetensors
  python3 -W error -c 'import small; model = small.Model(); print([name for name in dir(small.Session) if name == "forward"])'
else
  command -v rustc >/dev/null || { echo "skipped: there is no rustc"; exit 77; }
  rustc --edition 2021 -D warnings -L . -l amp amp_test.rs -o amp_test
  ./amp_test amp.safetensors renamed.safetensors
  printf 'mod small;\nfn main() { assert!(small::Model::new().is_ok()); }\n' >both.rs
  rustc --edition 2021 -D warnings -L . -l small both.rs -o both
  ./both
fi
