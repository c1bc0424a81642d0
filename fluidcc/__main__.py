"""``python -m fluidcc``: the command where its script is not on the path."""

from fluidcc.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
