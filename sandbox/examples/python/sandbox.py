"""Starts and stops the sandbox for a test."""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]


def built(name, variable, target):
    """Returns a program: named by an environment variable, built in this checkout, or found on the path."""
    found = [path for profile in ("release", "debug") if (path := target / profile / name).is_file()]
    return os.environ.get(variable) or (str(found[0]) if found else name)


class Sandbox:
    """A sandbox on free ports, as a context manager: `service`, `chains` with `url` and `account`, `key`, and `config`."""

    def __init__(self, *flags):
        self.directory = tempfile.mkdtemp(prefix="countersign-sandbox-")
        program = built("countersign-sandbox", "COUNTERSIGN_SANDBOX", CHECKOUT / "sandbox" / "target")
        command = [program, "--port", "0", "--json", "--dir", self.directory, *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError("the sandbox has not started")
        started = json.loads(line)
        self.service, self.key, self.config = started["service"], started["key"], started["config"]
        self.chains = {chain["chain"]: chain for chain in started["chains"]}

    def post(self, what, **parameters):
        """Controls the sandbox, for example `post("lies", name="evm-redeemer", on="true")`."""
        url = f"{self.service}/sandbox/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(urllib.request.Request(url, method="POST")) as response:
            return json.load(response)

    def stop(self):
        """Stops the program and removes its files."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
