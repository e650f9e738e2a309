import sys, yaml, base, incus
from pathlib import Path
spec = yaml.safe_load((Path(__file__).parent / "images.yml").read_text())
n=sys.argv[1]
base.build(n, spec["bases"][n], spec["base_packages"], "try", sys.stdout)
