"""What NDB tells of this data node (database ndbinfo), asked of a SQL node through one client that stays connected.

Each query is about this node alone; its id is in /etc/ntier/ndbmtd/environment."""

import subprocess
import sys

ENVIRONMENT = "/etc/ntier/ndbmtd/environment"
CLIENT = ["mysql", "--defaults-file=/etc/ntier/ndbmtd/monitor.cnf", "--batch", "--skip-column-names", "--unbuffered"]


def node_id():
    with open(ENVIRONMENT, encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("NODE_ID=")).partition("=")[2])


class Ndbinfo:
    """Answers come line by line; a line "end" after each query says that it is complete."""

    def __init__(self):
        self.client = subprocess.Popen(CLIENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def rows(self, query):
        """Fields of each row. Ends the program if the SQL node is lost."""
        self.client.stdin.write(f"{query};\nSELECT 'end';\n")
        self.client.stdin.flush()
        found = []
        while True:
            line = self.client.stdout.readline()
            if not line:
                sys.exit(f"mysql ended with exit code {self.client.wait()}")
            if line == "end\n":
                return found
            found.append(line.rstrip("\n").split("\t"))
