#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tune.sh: submits the array job that measures, and then, if all its tasks succeed, the job that merges.
set -euo pipefail
cd "$(dirname "$0")"
array=$(sbatch --parsable tune.sbatch)
sbatch --dependency="afterok:$array" --kill-on-invalid-dep=yes merge.sbatch
