"""What every test needs: figures without a screen, and property tests that a busy machine cannot fail."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

settings.register_profile("fluidcc", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("fluidcc")
