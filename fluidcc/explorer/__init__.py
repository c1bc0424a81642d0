"""A page on which a network is changed by sliders and seen at once."""
