"""What notebooks and other programs use: `import ntier_analysis as na; na.Store("results/store")`."""

from ntier_analysis.api.comparing import Comparison
from ntier_analysis.api.density import Density
from ntier_analysis.api.mapping import Maps
from ntier_analysis.api.store import Store
from ntier_analysis.api.sweep import Sweep
from ntier_analysis.api.verdict import Bottleneck, Verdict

__all__ = ["Bottleneck", "Comparison", "Density", "Maps", "Store", "Sweep", "Verdict"]
