"""From a network to numbers and back: layout, workspace, fused steps, the Dataset of a run."""
