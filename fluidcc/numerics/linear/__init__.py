"""Linear systems with delays: responses, roots, counts, margins."""
