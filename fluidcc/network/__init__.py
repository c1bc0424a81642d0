"""Networks: what users build, and what every solver reads of them."""

from __future__ import annotations

from fluidcc.network.network import Network

__all__ = ["Network"]
