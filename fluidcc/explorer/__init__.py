"""A page on which a network is changed by sliders and seen at once."""

from fluidcc.base.extras import need

for _module in ("panel", "tomli_w"):
    need(_module, "explore", "the explorer")
