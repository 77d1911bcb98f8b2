# SPDX-License-Identifier: Apache-2.0
"""check_clusters.py FOLDER: checks the job files of examples/clusters against Slurm's options, the object fields of
Kubernetes and the MPI operator, and each other: numbers of ranks, names of programs, parts of a tuning. Prints a
line for each error. Exits with 1 if there is one, with 77 if Python has no yaml."""
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped: Python has no yaml (package python3-yaml)")
    sys.exit(77)

# The options of sbatch(1) that are useful here, and whether they take a value.
SLURM_OPTIONS = {
    "account": True, "array": True, "constraint": True, "cpus-per-task": True, "error": True, "exclusive": False,
    "gpus-per-node": True, "gpus-per-task": True, "gres": True, "job-name": True, "mem": True, "mem-per-cpu": True,
    "nodes": True, "ntasks": True, "ntasks-per-node": True, "output": True, "partition": True, "qos": True,
    "requeue": False, "reservation": True, "signal": True, "switches": True, "time": True,
}
TIME = re.compile(r"(\d+-)?\d{1,2}:\d{2}:\d{2}|\d+")
ENVIRONMENT = {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_NTASKS", "SLURM_JOB_ID"}


class Checker:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.mistakes = []
        cmake = (self.folder / "CMakeLists.txt").read_text()
        self.ranks = {int(n) for n in re.findall(r"\bRANKS (\d+)", cmake)}
        programs = re.search(r"foreach\(program ([a-z ]+)\)", cmake)
        self.programs = {"cluster_" + name for name in programs.group(1).split()} if programs else set()

    def wrong(self, path, text):
        self.mistakes.append(f"{path.relative_to(self.folder)}: {text}")

    def want(self, path, condition, text):
        if not condition:
            self.wrong(path, text)
        return condition

    def check_ranks(self, path, ranks):
        self.want(path, self.ranks == {ranks},
                  f"tasks: another number than RANKS in CMakeLists.txt; expected {self.ranks}, got {ranks}")

    def check_programs(self, path, text):
        for name in re.findall(r"\bcluster_\w+", text):
            self.want(path, name in self.programs, f"runs {name}, which CMakeLists.txt does not build")

    # Slurm.

    def read_options(self, path, lines):
        options = {}
        for number, line in enumerate(lines, 1):
            if not line.startswith("#SBATCH"):
                continue
            found = re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line)
            if not self.want(path, found,
                             f'line {number}: wrong form; expected "#SBATCH --option=value", got "{line}"'):
                continue
            name, value = found.groups()
            if self.want(path, name in SLURM_OPTIONS, f'line {number}: sbatch has no option "--{name}"'):
                takes = "missing value; expected one" if SLURM_OPTIONS[name] else "takes no value"
                self.want(path, SLURM_OPTIONS[name] == (value is not None), f'line {number}: "--{name}": {takes}')
            self.want(path, name not in options, f'line {number}: "--{name}" stands there twice')
            self.want(path, all(l.startswith("#") for l in lines[:number]),
                      f"line {number}: sbatch reads no options after the first command")
            options[name] = value
        return options

    def number(self, path, options, name):
        value = options.get(name) or ""
        return int(value) if self.want(path, value.isdigit() and int(value) > 0,
                                       f'"--{name}": no number; expected one above 0, got "{value}"') else 0

    def check_script(self, path):
        text = path.read_text()
        lines = text.splitlines()
        self.want(path, lines[0] == "#!/bin/bash",
                  f'first line: wrong interpreter; expected "#!/bin/bash", got "{lines[0]}"')
        self.want(path, "set -euo pipefail" in lines, 'errors are not fatal; expected "set -euo pipefail"')
        parsed = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
        self.want(path, parsed.returncode == 0, f"bash: {parsed.stderr.strip()}")
        known = ENVIRONMENT | set(re.findall(r"^(\w+)=", text, re.M))
        for name in re.findall(r"\$\{?([A-Za-z_]\w*)", text):
            self.want(path, name in known, f"nothing sets ${name}")
        self.check_programs(path, text)
        return lines, text

    def check_sbatch(self, path):
        lines, text = self.check_script(path)
        options = self.read_options(path, lines)
        limit = options.get("time") or ""
        self.want(path, TIME.fullmatch(limit), f'"--time": no limit; expected D-HH:MM:SS or minutes, got "{limit}"')
        tasks, nodes = self.number(path, options, "ntasks"), self.number(path, options, "nodes")
        if "ntasks-per-node" in options:
            each = self.number(path, options, "ntasks-per-node")
            self.want(path, tasks == nodes * each,
                      f"ntasks: another number than nodes x ntasks-per-node; expected {nodes} x {each}, got {tasks}")
        commands = "\n".join(line for line in lines if not line.startswith("#"))
        if "cluster_" in commands:
            self.check_ranks(path, tasks)
            self.want(path, re.search(r"^srun |^mpirun -np \"\$SLURM_NTASKS\" ", commands, re.M),
                      "no launcher of the tasks; expected srun, or mpirun with as many ranks as there are tasks")
        if "--part" in commands:
            array = re.fullmatch(r"1-(\d+)", options.get("array") or "")
            self.want(path, array,
                      f'"--array": parts are numbered from 1 on; expected 1-N, got "{options.get("array")}"')
            self.want(path, '--part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"' in commands,
                      "--part: wrong value; expected the array's number and count")

    def check_slurm(self):
        for path in sorted((self.folder / "slurm").glob("*.sbatch")):
            self.check_sbatch(path)
        for path in sorted((self.folder / "slurm").glob("*.sh")):
            _, text = self.check_script(path)
            for name in re.findall(r"\S+\.sbatch", text):
                self.want(path, (path.parent / name).is_file(), f"submits {name}, which is not there")

    # Kubernetes.

    def check_pod(self, path, where, template, policies):
        """Checks the containers of a template: each has an image and a command."""
        spec = (template or {}).get("spec") or {}
        containers = spec.get("containers") or []
        self.want(path, containers, f"{where}.template: no containers; expected spec.containers")
        policy = spec.get("restartPolicy")
        self.want(path, policy in policies, f"{where}: wrong restartPolicy; expected {policies}, got {policy}")
        volumes = {volume.get("name") for volume in spec.get("volumes") or []}
        for container in containers:
            for field in ("name", "image", "command"):
                self.want(path, container.get(field), f"{where}: container: missing {field}; expected one")
            words = (container.get("command") or []) + (container.get("args") or [])
            self.want(path, all(isinstance(word, str) for word in words),
                      f"{where}: words of a command are strings: {words}")
            for mount in container.get("volumeMounts") or []:
                self.want(path, mount.get("name") in volumes, f'{where}: no volume "{mount.get("name")}"')
            limits, requests = ((container.get("resources") or {}).get(k) for k in ("limits", "requests"))
            self.want(path, limits == requests, f"{where}: limits differ from requests, so CPUs would be shared")
        return containers

    def check_mpi_job(self, path, document):
        spec = document.get("spec") or {}
        replicas = spec.get("mpiReplicaSpecs") or {}
        if not self.want(path, set(replicas) == {"Launcher", "Worker"},
                         f"MPIJob: wrong mpiReplicaSpecs; expected Launcher and Worker, got {sorted(replicas)}"):
            return
        self.want(path, document["apiVersion"] == "kubeflow.org/v2beta1", f"got apiVersion {document['apiVersion']}")
        known = {"slotsPerWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath", "mpiImplementation"}
        unknown = set(spec) - known
        self.want(path, not unknown, f"an MPIJob of v2beta1 has no field {sorted(unknown)}")
        words = []
        for name, replica in replicas.items():
            self.want(path, replica.get("restartPolicy") in ("Never", "OnFailure"),
                      f"{name}: wrong restartPolicy; expected Never or OnFailure")
            containers = self.check_pod(path, name, replica.get("template"), {None})
            if name == "Launcher":
                self.want(path, replica.get("replicas") == 1, "there is one Launcher")
                words = [w for c in containers for w in (c.get("command") or []) + (c.get("args") or [])]
        slots = (replicas["Worker"].get("replicas") or 0) * spec.get("slotsPerWorker", 1)
        self.want(path, words[:1] == ["mpirun"] and "-np" in words, "the Launcher runs mpirun -np")
        ranks = str(words[words.index("-np") + 1]) if "-np" in words else ""
        if self.want(path, ranks.isdigit(), f'mpirun -np: no number; expected one, got "{ranks}"'):
            self.want(path, int(ranks) == slots, f"mpirun starts {ranks} ranks, workers x slotsPerWorker are {slots}")
            self.check_ranks(path, int(ranks))

    def check_job(self, path, document):
        spec = document.get("spec") or {}
        self.want(path, document["apiVersion"] == "batch/v1",
                  f"Job: wrong apiVersion; expected batch/v1, got {document['apiVersion']}")
        containers = self.check_pod(path, "the Job", spec.get("template"), {"Never", "OnFailure"})
        text = " ".join(w for c in containers for w in c.get("args") or [])
        if "--part" not in text:
            return
        parts = spec.get("completions")
        self.want(path, spec.get("completionMode") == "Indexed" and isinstance(parts, int),
                  "parts: no numbers; expected completionMode Indexed and completions")
        self.want(path, '--part "$((JOB_COMPLETION_INDEX + 1))/$PARTS"' in text,
                  "--part: parts are numbered from 1 on, a Job's indices from 0; "
                  "expected $((JOB_COMPLETION_INDEX + 1))")
        given = {e.get("name"): e.get("value") for c in containers for e in c.get("env") or []}.get("PARTS")
        self.want(path, given == str(parts), f"PARTS: another number than completions; expected {parts}, got {given}")

    def check_kubernetes(self):
        for path in sorted((self.folder / "kubernetes").glob("*.yaml")):
            try:
                documents = list(yaml.safe_load_all(path.read_text()))
            except yaml.YAMLError as error:
                self.wrong(path, " ".join(str(error).split()))
                continue
            self.check_programs(path, path.read_text())
            for document in documents:
                kind = document.get("kind") if isinstance(document, dict) else None
                checks = {"MPIJob": self.check_mpi_job, "Job": self.check_job}
                if not self.want(path, kind in checks, f"kind: unknown kind; expected Job or MPIJob, got {kind}"):
                    continue
                self.want(path, document.get("apiVersion"), "apiVersion: missing; expected one")
                document.setdefault("apiVersion", "")
                self.want(path, (document.get("metadata") or {}).get("name"), "metadata.name: missing; expected one")
                checks[kind](path, document)

    def run(self):
        self.want(self.folder / "CMakeLists.txt", len(self.ranks) == 1,
                  f"RANKS: several numbers or none; expected one, got {self.ranks}")
        self.check_slurm()
        self.check_kubernetes()
        self.check_programs(self.folder / "Containerfile", (self.folder / "Containerfile").read_text())
        return self.mistakes


def main():
    mistakes = Checker(sys.argv[1]).run()
    for mistake in mistakes:
        print(mistake)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
