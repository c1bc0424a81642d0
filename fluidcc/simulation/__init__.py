"""From a network to numbers and back: layout, workspace, generated steps, and the Dataset of a run."""
