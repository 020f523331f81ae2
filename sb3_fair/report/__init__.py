"""Pictures of a trade-off for people who choose: one HTML file that needs no network, and PNGs for papers."""

from sb3_fair.report.disparities import plot_action_radar, plot_box_grid, plot_tradeoff
from sb3_fair.report.write import from_run, write_report

__all__ = ["from_run", "plot_action_radar", "plot_box_grid", "plot_tradeoff", "write_report"]
